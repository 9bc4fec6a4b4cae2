-- A deleted node comes back only when it is heard after that, not out of the memory of a radio.
CREATE TABLE `deleted_nodes` (
	`node_num` integer PRIMARY KEY NOT NULL,
	`deleted_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `clock_marks` (
	`name` text PRIMARY KEY NOT NULL,
	`t` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `device_config_changes` ADD `notice` text;--> statement-breakpoint
ALTER TABLE `messages` ADD `notice` text;--> statement-breakpoint
ALTER TABLE `traceroutes` ADD `notice` text;--> statement-breakpoint
CREATE INDEX `packets_replayed` ON `packets` (`id`) WHERE replayed;
--> statement-breakpoint
CREATE TRIGGER `nodes_back` AFTER INSERT ON `nodes` BEGIN
	DELETE FROM `deleted_nodes` WHERE `node_num` = new.`node_num`;
END;
