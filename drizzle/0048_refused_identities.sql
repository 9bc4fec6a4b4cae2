CREATE TABLE `refused_identities` (
	`node_num` integer NOT NULL,
	`source_id` integer NOT NULL,
	`heard` integer NOT NULL,
	`public_key` text,
	`long_name` text,
	`short_name` text,
	`gateway` integer NOT NULL,
	`last_at` integer NOT NULL,
	PRIMARY KEY(`node_num`, `source_id`, `heard`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `own_radio_decisions` (
	`node_num` integer PRIMARY KEY NOT NULL,
	`is_own` integer NOT NULL,
	`decided_at` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `nodes` ADD `refused_heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `sources` ADD `disputed_node_num` integer;--> statement-breakpoint
CREATE TRIGGER `nodes_refused_forgotten` AFTER DELETE ON `nodes` BEGIN
	DELETE FROM `refused_identities` WHERE `node_num` = old.`node_num`;
END;--> statement-breakpoint
CREATE TRIGGER `nodes_refused_settled` AFTER UPDATE OF `refused_public_key`, `refused_long_name`, `refused_short_name` ON `nodes`
WHEN coalesce(old.`refused_public_key`, old.`refused_long_name`, old.`refused_short_name`) IS NOT NULL
	AND coalesce(new.`refused_public_key`, new.`refused_long_name`, new.`refused_short_name`) IS NULL BEGIN
	DELETE FROM `refused_identities` WHERE `node_num` = new.`node_num`;
END;
