CREATE TABLE `channel_metrics` (
	`node_id` integer NOT NULL,
	`channel` integer NOT NULL,
	`battery_level` real,
	`voltage` real,
	`channel_utilization` real,
	`air_util_tx` real,
	`uptime_seconds` integer,
	`t` integer,
	PRIMARY KEY(`node_id`, `channel`)
);
--> statement-breakpoint
CREATE TABLE `channel_positions` (
	`node_id` integer NOT NULL,
	`channel` integer NOT NULL,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	`altitude` real,
	`precision_bits` integer,
	`t` integer,
	PRIMARY KEY(`node_id`, `channel`)
);
--> statement-breakpoint
ALTER TABLE `neighbors` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `traceroutes` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
ALTER TABLE `waypoints` ADD `channel` integer DEFAULT -1;--> statement-breakpoint
CREATE INDEX `nodes_hidden` ON `nodes` (`node_num`) WHERE is_hidden;--> statement-breakpoint
-- What comes on another channel replaces what is known: those who read only the earlier one still see that.
CREATE TRIGGER `nodes_position_replaced` AFTER UPDATE OF `position_channel` ON `nodes` WHEN old.`position_channel` >= 0 AND new.`position_channel` IS NOT old.`position_channel` AND old.`latitude` IS NOT NULL AND old.`longitude` IS NOT NULL BEGIN
	INSERT INTO `channel_positions` VALUES (old.`id`, old.`position_channel`, old.`latitude`, old.`longitude`, old.`altitude`, old.`precision_bits`, old.`position_time`)
		ON CONFLICT (`node_id`, `channel`) DO UPDATE SET `latitude` = excluded.`latitude`, `longitude` = excluded.`longitude`, `altitude` = excluded.`altitude`, `precision_bits` = excluded.`precision_bits`, `t` = excluded.`t`;
	DELETE FROM `channel_positions` WHERE `node_id` = old.`id` AND `channel` NOT IN (SELECT `channel` FROM `channel_positions` WHERE `node_id` = old.`id` ORDER BY `t` DESC LIMIT 16);
END;--> statement-breakpoint
CREATE TRIGGER `nodes_metrics_replaced` AFTER UPDATE OF `metrics_channel` ON `nodes` WHEN old.`metrics_channel` >= 0 AND new.`metrics_channel` IS NOT old.`metrics_channel` BEGIN
	INSERT INTO `channel_metrics` VALUES (old.`id`, old.`metrics_channel`, old.`battery_level`, old.`voltage`, old.`channel_utilization`, old.`air_util_tx`, old.`uptime_seconds`, old.`device_metrics_time`)
		ON CONFLICT (`node_id`, `channel`) DO UPDATE SET `battery_level` = excluded.`battery_level`, `voltage` = excluded.`voltage`, `channel_utilization` = excluded.`channel_utilization`, `air_util_tx` = excluded.`air_util_tx`, `uptime_seconds` = excluded.`uptime_seconds`, `t` = excluded.`t`;
	DELETE FROM `channel_metrics` WHERE `node_id` = old.`id` AND `channel` NOT IN (SELECT `channel` FROM `channel_metrics` WHERE `node_id` = old.`id` ORDER BY `t` DESC LIMIT 16);
END;--> statement-breakpoint
CREATE TRIGGER `nodes_values_forgotten` AFTER DELETE ON `nodes` BEGIN
	DELETE FROM `channel_positions` WHERE `node_id` = old.`id`;
	DELETE FROM `channel_metrics` WHERE `node_id` = old.`id`;
END;--> statement-breakpoint
-- What is kept of the messages and rules for viewers who do not see hidden nodes is another one then.
CREATE TRIGGER `nodes_hidden_updated` AFTER UPDATE OF `is_hidden` ON `nodes` WHEN old.`is_hidden` OR new.`is_hidden` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` IN ('messages', 'alert_rules');
END;--> statement-breakpoint
CREATE TRIGGER `nodes_hidden_deleted` AFTER DELETE ON `nodes` WHEN old.`is_hidden` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` IN ('messages', 'alert_rules');
END;
