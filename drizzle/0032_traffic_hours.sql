CREATE TABLE `message_hours` (
	`t` integer PRIMARY KEY NOT NULL,
	`counts` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `packet_hours` (
	`t` integer PRIMARY KEY NOT NULL,
	`first_id` integer NOT NULL
);
--> statement-breakpoint
INSERT INTO `message_hours` SELECT `hour`, json_group_object(`place`, `n`) FROM (
	SELECT `timestamp` - `timestamp` % 3600000 AS `hour`, iif(`to_node_num` = 4294967295, `channel` || '', 'direct') AS `place`, count(*) AS `n`
	FROM `messages` GROUP BY 1, 2
) GROUP BY `hour`;--> statement-breakpoint
CREATE TRIGGER `messages_hour_counted` AFTER INSERT ON `messages` BEGIN
	INSERT INTO `message_hours` VALUES (NEW.`timestamp` - NEW.`timestamp` % 3600000, json_object(iif(NEW.`to_node_num` = 4294967295, NEW.`channel` || '', 'direct'), 1))
		ON CONFLICT (`t`) DO UPDATE SET `counts` = json_set(`counts`, '$."' || iif(NEW.`to_node_num` = 4294967295, NEW.`channel`, 'direct') || '"',
			coalesce(`counts` ->> ('$."' || iif(NEW.`to_node_num` = 4294967295, NEW.`channel`, 'direct') || '"'), 0) + 1);
END;--> statement-breakpoint
CREATE TRIGGER `messages_hour_uncounted` AFTER DELETE ON `messages` BEGIN
	UPDATE `message_hours` SET `counts` = json_set(`counts`, '$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"',
			(`counts` ->> ('$."' || iif(OLD.`to_node_num` = 4294967295, OLD.`channel`, 'direct') || '"')) - 1)
		WHERE `t` = OLD.`timestamp` - OLD.`timestamp` % 3600000;
	DELETE FROM `message_hours` WHERE `t` = OLD.`timestamp` - OLD.`timestamp` % 3600000
		AND NOT EXISTS (SELECT 1 FROM json_each(`counts`) WHERE `value` > 0);
END;--> statement-breakpoint
CREATE TRIGGER `messages_hour_recounted` AFTER UPDATE OF `channel` ON `messages` WHEN NEW.`channel` <> OLD.`channel` AND NEW.`to_node_num` = 4294967295 BEGIN
	UPDATE `message_hours` SET `counts` = json_set(`counts`, '$."' || OLD.`channel` || '"', (`counts` ->> ('$."' || OLD.`channel` || '"')) - 1,
			'$."' || NEW.`channel` || '"', coalesce(`counts` ->> ('$."' || NEW.`channel` || '"'), 0) + 1)
		WHERE `t` = NEW.`timestamp` - NEW.`timestamp` % 3600000;
END;--> statement-breakpoint
INSERT INTO `packet_hours` SELECT `t` - `t` % 3600000, min(`id`) FROM `packets` WHERE NOT `replayed` GROUP BY 1;--> statement-breakpoint
-- An hour begins with the first packet that is later than the one before it. If that hour is known already, and began
-- before the hour that now ends, a clock ran ahead then: the hour begins again.
CREATE TRIGGER `packets_hour_begun` AFTER INSERT ON `packets` WHEN NOT NEW.`replayed` AND NEW.`t` - NEW.`t` % 3600000 >
	coalesce((SELECT p.`t` - p.`t` % 3600000 FROM `packets` p WHERE p.`id` < NEW.`id` AND NOT p.`replayed` ORDER BY p.`id` DESC LIMIT 1), -1)
BEGIN
	INSERT INTO `packet_hours` VALUES (NEW.`t` - NEW.`t` % 3600000, NEW.`id`) ON CONFLICT (`t`) DO UPDATE SET `first_id` = excluded.`first_id`
		WHERE `first_id` < (SELECT h.`first_id` FROM `packets` p CROSS JOIN `packet_hours` h ON h.`t` = p.`t` - p.`t` % 3600000
			WHERE p.`id` < NEW.`id` AND NOT p.`replayed` ORDER BY p.`id` DESC LIMIT 1);
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'nodes', 0, count(*) FROM `nodes` GROUP BY 1, 2;--> statement-breakpoint
CREATE TRIGGER `nodes_counted` AFTER INSERT ON `nodes` BEGIN
	INSERT INTO `row_counts` VALUES ('nodes', 0, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `nodes_uncounted` AFTER DELETE ON `nodes` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'nodes' AND `owner` = 0;
END;
