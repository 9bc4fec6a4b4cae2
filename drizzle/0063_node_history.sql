CREATE TABLE `finding_looks` (
	`rule` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `finding_mutes` (
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`muted_at` integer NOT NULL,
	`muted_by` text,
	PRIMARY KEY(`rule`, `subject`)
);
--> statement-breakpoint
CREATE TABLE `findings` (
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`since` integer NOT NULL,
	`is_likely` integer NOT NULL,
	`nodes` text NOT NULL,
	`channels` text NOT NULL,
	`evidence` text NOT NULL,
	PRIMARY KEY(`rule`, `subject`)
);
--> statement-breakpoint
CREATE TABLE `node_changes` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`node_num` integer NOT NULL,
	`t` integer NOT NULL,
	`field` text NOT NULL,
	`before` text NOT NULL,
	`after` text,
	`channel` integer
);
--> statement-breakpoint
CREATE INDEX `node_changes_of_node` ON `node_changes` (`node_num`,`id`);--> statement-breakpoint
CREATE TABLE `node_days` (
	`node_num` integer NOT NULL,
	`day` integer NOT NULL,
	`hours` text NOT NULL,
	`packets` integer NOT NULL,
	`direct` integer NOT NULL,
	`min_hops` integer,
	`max_hops` integer,
	PRIMARY KEY(`node_num`, `day`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `node_receivers` (
	`node_num` integer NOT NULL,
	`source_id` integer NOT NULL,
	`gateway` integer NOT NULL,
	`first_at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`packets` integer NOT NULL,
	`direct` integer NOT NULL,
	`snr` real,
	`hops` integer,
	`via_mqtt` integer NOT NULL,
	PRIMARY KEY(`node_num`, `source_id`, `gateway`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `node_receivers_last` ON `node_receivers` (`source_id`,`gateway`,`last_at`);--> statement-breakpoint
CREATE TRIGGER `nodes_changed` AFTER UPDATE OF `long_name`, `short_name`, `role`, `hw_model`, `firmware_version`, `public_key` ON `nodes`
WHEN new.`node_num` = old.`node_num` AND (new.`long_name` IS NOT old.`long_name` OR new.`short_name` IS NOT old.`short_name` OR new.`role` IS NOT old.`role` OR new.`hw_model` IS NOT old.`hw_model` OR new.`firmware_version` IS NOT old.`firmware_version` OR new.`public_key` IS NOT old.`public_key`) BEGIN
	INSERT INTO `node_changes` (`node_num`, `t`, `field`, `before`, `after`)
		SELECT new.`node_num`, iif(new.`last_heard` IS NOT old.`last_heard`, new.`last_heard`, max(coalesce(new.`last_heard`, 0), CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))), `value` ->> 0, `value` ->> 1, `value` ->> 2
		FROM json_each(json_array(
			json_array('longName', old.`long_name`, new.`long_name`),
			json_array('shortName', old.`short_name`, new.`short_name`),
			json_array('role', old.`role`, new.`role`),
			json_array('hwModel', old.`hw_model`, new.`hw_model`),
			json_array('firmwareVersion', old.`firmware_version`, new.`firmware_version`),
			json_array('publicKey', old.`public_key`, new.`public_key`)))
		WHERE `value` ->> 1 IS NOT NULL AND `value` ->> 2 IS NOT `value` ->> 1;
	DELETE FROM `node_changes` WHERE `node_num` = new.`node_num` AND `id` <= (SELECT `id` FROM `node_changes`
		WHERE `node_num` = new.`node_num` ORDER BY `id` DESC LIMIT 1 OFFSET 100);
END;--> statement-breakpoint
CREATE TRIGGER `nodes_restarted` AFTER UPDATE OF `uptime_seconds` ON `nodes`
WHEN new.`uptime_seconds` < old.`uptime_seconds` AND new.`device_metrics_time` > old.`device_metrics_time`
	AND new.`metrics_channel` IS old.`metrics_channel` AND new.`node_num` = old.`node_num` BEGIN
	INSERT INTO `node_changes` (`node_num`, `t`, `field`, `before`, `after`, `channel`)
		VALUES (new.`node_num`, new.`device_metrics_time`, 'restarted', old.`uptime_seconds`, new.`uptime_seconds`, new.`metrics_channel`);
	DELETE FROM `node_changes` WHERE `node_num` = new.`node_num` AND `id` <= (SELECT `id` FROM `node_changes`
		WHERE `node_num` = new.`node_num` ORDER BY `id` DESC LIMIT 1 OFFSET 100);
END;--> statement-breakpoint
CREATE TRIGGER `nodes_past_forgotten` AFTER DELETE ON `nodes`
WHEN NOT EXISTS (SELECT 1 FROM `renumberings` WHERE `from_node_num` = old.`node_num` AND `undone_at` IS NULL) BEGIN
	DELETE FROM `node_changes` WHERE `node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `node_days` WHERE `node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `node_receivers` WHERE `node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
END;
