ALTER TABLE `nodes` ADD `public_channel` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `public_heard` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `public_hops` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `public_via_mqtt` integer;--> statement-breakpoint
ALTER TABLE `messages` ADD `first_reception` text;--> statement-breakpoint
CREATE TRIGGER `nodes_hearing_replaced` AFTER UPDATE OF `public_channel` ON `nodes` WHEN old.`public_channel` IS NOT NULL AND new.`public_channel` IS NOT old.`public_channel` BEGIN
	INSERT INTO `channel_hearings` VALUES (old.`id`, old.`public_channel`, old.`public_heard`, old.`public_heard`, old.`public_hops`, old.`public_via_mqtt`)
		ON CONFLICT (`node_id`, `channel`) DO UPDATE SET `first_heard` = min(`first_heard`, excluded.`first_heard`),
			`hops_away` = iif(excluded.`last_heard` >= `last_heard`, excluded.`hops_away`, `hops_away`),
			`via_mqtt` = iif(excluded.`last_heard` >= `last_heard`, excluded.`via_mqtt`, `via_mqtt`),
			`last_heard` = max(`last_heard`, excluded.`last_heard`);
END;--> statement-breakpoint
-- The revision of the messages is this counter plus the highest id, which tells of a new message without a write.
DROP TRIGGER `messages_inserted`;--> statement-breakpoint
CREATE TRIGGER `messages_inserted` AFTER INSERT ON `messages` WHEN NEW.`id` < (SELECT max(`id`) FROM `messages`) OR NEW.`id` < 1 BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 WHERE `name` = 'messages';
END;--> statement-breakpoint
-- Who deletes many messages at once counts once for all of them, and says so by `row_count`.
DROP TRIGGER `messages_deleted`;--> statement-breakpoint
CREATE TRIGGER `messages_deleted` AFTER DELETE ON `messages` WHEN (SELECT `row_count` FROM `revisions` WHERE `name` = 'messages') IS NULL BEGIN
	UPDATE `revisions` SET `value` = `value` + 1 + max(0, OLD.`id` - max(0, coalesce((SELECT max(`id`) FROM `messages`), 0))) WHERE `name` = 'messages';
END;--> statement-breakpoint
DROP TRIGGER `messages_hour_uncounted`;--> statement-breakpoint
CREATE TRIGGER `messages_hour_uncounted` AFTER DELETE ON `messages` WHEN (SELECT `row_count` FROM `revisions` WHERE `name` = 'messages') IS NULL BEGIN
	UPDATE `message_hours` SET `counts` = json_set(`counts`, '$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"',
			(`counts` ->> ('$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"')) - 1)
		WHERE `t` = cast(OLD.`timestamp` AS integer) - OLD.`timestamp` % 3600000;
	DELETE FROM `message_hours` WHERE `t` = cast(OLD.`timestamp` AS integer) - OLD.`timestamp` % 3600000
		AND NOT EXISTS (SELECT 1 FROM json_each(`counts`) WHERE `value` > 0);
END;
