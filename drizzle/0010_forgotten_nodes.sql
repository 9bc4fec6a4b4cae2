-- The rows of a node that is deleted go later, in slices: what is left of them hangs on its id, which is never given again.
CREATE TABLE `forgotten_nodes` (
	`node_id` integer PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER `nodes_forgotten` AFTER DELETE ON `nodes` BEGIN
	INSERT INTO `forgotten_nodes` (`node_id`) VALUES (old.`id`) ON CONFLICT DO NOTHING;
END;
--> statement-breakpoint
-- Without its foreign key, which deleted a whole track in one step.
CREATE TABLE `__new_positions` (
	`node_id` integer NOT NULL,
	`t` integer NOT NULL,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	`altitude` real,
	`precision_bits` integer,
	PRIMARY KEY(`node_id`, `t`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_positions`("node_id", "t", "latitude", "longitude", "altitude", "precision_bits") SELECT "node_id", "t", "latitude", "longitude", "altitude", "precision_bits" FROM `positions` ORDER BY "node_id", "t";--> statement-breakpoint
DROP TABLE `positions`;--> statement-breakpoint
ALTER TABLE `__new_positions` RENAME TO `positions`;