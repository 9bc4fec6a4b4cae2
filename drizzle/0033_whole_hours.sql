-- The hour of a time with a fraction of a millisecond is a whole number too: such a row could not be stored.
DROP TRIGGER `messages_hour_counted`;--> statement-breakpoint
CREATE TRIGGER `messages_hour_counted` AFTER INSERT ON `messages` BEGIN
	INSERT INTO `message_hours` VALUES (cast(NEW.`timestamp` AS integer) - NEW.`timestamp` % 3600000, json_object(iif(NEW.`to_node_num` = 4294967295, NEW.`channel` || '', 'direct'), 1))
		ON CONFLICT (`t`) DO UPDATE SET `counts` = json_set(`counts`, '$."' || iif(NEW.`to_node_num` = 4294967295, NEW.`channel`, 'direct') || '"',
			coalesce(`counts` ->> ('$."' || iif(NEW.`to_node_num` = 4294967295, NEW.`channel`, 'direct') || '"'), 0) + 1);
END;--> statement-breakpoint
DROP TRIGGER `messages_hour_uncounted`;--> statement-breakpoint
CREATE TRIGGER `messages_hour_uncounted` AFTER DELETE ON `messages` BEGIN
	UPDATE `message_hours` SET `counts` = json_set(`counts`, '$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"',
			(`counts` ->> ('$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"')) - 1)
		WHERE `t` = cast(OLD.`timestamp` AS integer) - OLD.`timestamp` % 3600000;
	DELETE FROM `message_hours` WHERE `t` = cast(OLD.`timestamp` AS integer) - OLD.`timestamp` % 3600000
		AND NOT EXISTS (SELECT 1 FROM json_each(`counts`) WHERE `value` > 0);
END;--> statement-breakpoint
DROP TRIGGER `messages_hour_recounted`;--> statement-breakpoint
CREATE TRIGGER `messages_hour_recounted` AFTER UPDATE OF `channel` ON `messages` WHEN NEW.`channel` <> OLD.`channel` AND NEW.`to_node_num` = 4294967295 BEGIN
	UPDATE `message_hours` SET `counts` = json_set(`counts`, '$."' || OLD.`channel` || '"', (`counts` ->> ('$."' || OLD.`channel` || '"')) - 1,
			'$."' || NEW.`channel` || '"', coalesce(`counts` ->> ('$."' || NEW.`channel` || '"'), 0) + 1)
		WHERE `t` = cast(NEW.`timestamp` AS integer) - NEW.`timestamp` % 3600000;
END;--> statement-breakpoint
DROP TRIGGER `packets_hour_begun`;--> statement-breakpoint
CREATE TRIGGER `packets_hour_begun` AFTER INSERT ON `packets` WHEN NOT NEW.`replayed` AND cast(NEW.`t` AS integer) - NEW.`t` % 3600000 >
	coalesce((SELECT cast(p.`t` AS integer) - p.`t` % 3600000 FROM `packets` p WHERE p.`id` < NEW.`id` AND NOT p.`replayed` ORDER BY p.`id` DESC LIMIT 1), -1)
BEGIN
	INSERT INTO `packet_hours` VALUES (cast(NEW.`t` AS integer) - NEW.`t` % 3600000, NEW.`id`) ON CONFLICT (`t`) DO UPDATE SET `first_id` = excluded.`first_id`
		WHERE `first_id` < (SELECT h.`first_id` FROM `packets` p CROSS JOIN `packet_hours` h ON h.`t` = cast(p.`t` AS integer) - p.`t` % 3600000
			WHERE p.`id` < NEW.`id` AND NOT p.`replayed` ORDER BY p.`id` DESC LIMIT 1);
END;
