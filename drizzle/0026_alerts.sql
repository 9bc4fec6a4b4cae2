CREATE TABLE `alert_anchors` (
	`rule_id` integer NOT NULL,
	`node_num` integer NOT NULL,
	`latitude` real NOT NULL,
	`longitude` real NOT NULL,
	PRIMARY KEY(`rule_id`, `node_num`),
	FOREIGN KEY (`rule_id`) REFERENCES `alert_rules`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `alert_deliveries` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`uid` text NOT NULL,
	`destination_id` integer NOT NULL,
	`owner_id` integer NOT NULL,
	`rule_id` integer,
	`told` text NOT NULL,
	`state` text NOT NULL,
	`created_at` integer NOT NULL,
	`due_at` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`tried_at` integer,
	`ended_at` integer,
	`result` text,
	FOREIGN KEY (`destination_id`) REFERENCES `alert_destinations`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_deliveries_uid_unique` ON `alert_deliveries` (`uid`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_due` ON `alert_deliveries` (`state`,`due_at`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_destination` ON `alert_deliveries` (`destination_id`,`state`,`due_at`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_tried` ON `alert_deliveries` (`destination_id`,`tried_at`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_owner` ON `alert_deliveries` (`owner_id`,`id`);--> statement-breakpoint
CREATE INDEX `alert_deliveries_ended` ON `alert_deliveries` (`ended_at`);--> statement-breakpoint
CREATE TABLE `alert_delivery_items` (
	`delivery_id` integer NOT NULL,
	`alert_id` integer NOT NULL,
	PRIMARY KEY(`delivery_id`, `alert_id`),
	FOREIGN KEY (`delivery_id`) REFERENCES `alert_deliveries`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`alert_id`) REFERENCES `alerts`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `alert_delivery_items_alert` ON `alert_delivery_items` (`alert_id`);--> statement-breakpoint
CREATE TABLE `alert_destinations` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`uid` text NOT NULL,
	`owner_id` integer NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`enabled` integer NOT NULL,
	`settings` text NOT NULL,
	`confirmed_at` integer,
	`failures` integer DEFAULT 0 NOT NULL,
	`retry_at` integer,
	`last_result` text,
	`last_at` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_destinations_uid_unique` ON `alert_destinations` (`uid`);--> statement-breakpoint
CREATE INDEX `alert_destinations_owner` ON `alert_destinations` (`owner_id`);--> statement-breakpoint
CREATE TABLE `alert_marks` (
	`name` text PRIMARY KEY NOT NULL,
	`value` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `alert_push_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`sealed` text NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `alert_rules` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`uid` text NOT NULL,
	`owner_id` integer NOT NULL,
	`name` text NOT NULL,
	`kind` text NOT NULL,
	`enabled` integer NOT NULL,
	`rule` text NOT NULL,
	`revision` integer NOT NULL,
	`anchor_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`owner_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alert_rules_uid_unique` ON `alert_rules` (`uid`);--> statement-breakpoint
CREATE INDEX `alert_rules_owner` ON `alert_rules` (`owner_id`);--> statement-breakpoint
CREATE TABLE `alerts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`rule_id` integer NOT NULL,
	`owner_id` integer NOT NULL,
	`rule_name` text NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`subject` text NOT NULL,
	`key` text NOT NULL,
	`node_num` integer,
	`channel` integer,
	`direct` integer DEFAULT false NOT NULL,
	`what` text NOT NULL,
	`started_at` integer NOT NULL,
	`fired_at` integer,
	`resolved_at` integer,
	`acknowledged_at` integer,
	`acknowledged_by` text,
	`told_at` integer,
	`held` integer DEFAULT false NOT NULL,
	`inhibited` integer DEFAULT false NOT NULL,
	`step` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_key` ON `alerts` (`rule_id`,`key`);--> statement-breakpoint
CREATE UNIQUE INDEX `alerts_open` ON `alerts` (`rule_id`,`subject`) WHERE state <> 'resolved';--> statement-breakpoint
CREATE INDEX `alerts_owner` ON `alerts` (`owner_id`,`id`);--> statement-breakpoint
CREATE INDEX `alerts_fired` ON `alerts` (`rule_id`,`fired_at`);--> statement-breakpoint
CREATE INDEX `alerts_resolved` ON `alerts` (`resolved_at`) WHERE state = 'resolved';--> statement-breakpoint
CREATE INDEX `alerts_step` ON `alerts` (`step`);--> statement-breakpoint
-- Tells whoever keeps the rules of alerts in memory that one of them, or what its owner may see, is another one.
INSERT INTO `revisions` (`name`, `value`) VALUES ('alert_rules', abs(random() / 4096));--> statement-breakpoint
CREATE TRIGGER `alert_rules_inserted` AFTER INSERT ON `alert_rules` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_rules_updated` AFTER UPDATE ON `alert_rules` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_rules_deleted` AFTER DELETE ON `alert_rules` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_owners_updated` AFTER UPDATE OF `is_active`, `is_admin`, `channels`, `direct_read` ON `users` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_rights_inserted` AFTER INSERT ON `user_permissions` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_rights_updated` AFTER UPDATE ON `user_permissions` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;--> statement-breakpoint
CREATE TRIGGER `alert_rights_deleted` AFTER DELETE ON `user_permissions` BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'alert_rules';
END;