CREATE TABLE `renumberings` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`since` integer NOT NULL,
	`followed_at` integer NOT NULL,
	`undone_at` integer
);
--> statement-breakpoint
CREATE INDEX `renumberings_to` ON `renumberings` (`to_node_num`);--> statement-breakpoint
CREATE INDEX `renumberings_from` ON `renumberings` (`from_node_num`);