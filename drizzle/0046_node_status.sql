CREATE TABLE `channel_statuses` (
	`node_id` integer NOT NULL,
	`channel` integer NOT NULL,
	`status` text NOT NULL,
	`t` integer,
	PRIMARY KEY(`node_id`, `channel`)
);
--> statement-breakpoint
ALTER TABLE `nodes` ADD `name_altered` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `status` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `status_time` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `status_channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `nodes` ADD `status_signed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `status_heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `nodes_status` ON `nodes` (`node_num`) WHERE status is not null;--> statement-breakpoint
-- Like positions: those who may read only the earlier channel still see the status that came on it.
CREATE TRIGGER `nodes_status_replaced` AFTER UPDATE OF `status_channel` ON `nodes` WHEN old.`status_channel` >= 0 AND new.`status_channel` IS NOT old.`status_channel` AND old.`status` IS NOT NULL BEGIN
	INSERT INTO `channel_statuses` VALUES (old.`id`, old.`status_channel`, old.`status`, old.`status_time`)
		ON CONFLICT (`node_id`, `channel`) DO UPDATE SET `status` = excluded.`status`, `t` = excluded.`t`;
	DELETE FROM `channel_statuses` WHERE `node_id` = old.`id` AND `channel` NOT IN (SELECT `channel` FROM `channel_statuses` WHERE `node_id` = old.`id` ORDER BY `t` DESC LIMIT 16);
END;--> statement-breakpoint
CREATE TRIGGER `nodes_statuses_forgotten` AFTER DELETE ON `nodes` BEGIN
	DELETE FROM `channel_statuses` WHERE `node_id` = old.`id`;
END;
