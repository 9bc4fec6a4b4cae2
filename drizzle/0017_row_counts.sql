CREATE TABLE `row_counts` (
	`table_name` text NOT NULL,
	`owner` integer NOT NULL,
	`n` integer NOT NULL,
	PRIMARY KEY(`table_name`, `owner`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `traceroutes_answered` ON `traceroutes` (`to_node_num`);--> statement-breakpoint
CREATE INDEX `waypoints_sender` ON `waypoints` (`from_node_num`);--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'messages', `from_node_num`, count(*) FROM `messages` GROUP BY `from_node_num`;--> statement-breakpoint
CREATE TRIGGER `messages_counted` AFTER INSERT ON `messages` BEGIN
	INSERT INTO `row_counts` VALUES ('messages', NEW.`from_node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `messages_uncounted` AFTER DELETE ON `messages` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'messages' AND `owner` = OLD.`from_node_num`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'packets', `from_node_num`, count(*) FROM `packets` GROUP BY `from_node_num`;--> statement-breakpoint
CREATE TRIGGER `packets_counted` AFTER INSERT ON `packets` BEGIN
	INSERT INTO `row_counts` VALUES ('packets', NEW.`from_node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `packets_uncounted` AFTER DELETE ON `packets` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'packets' AND `owner` = OLD.`from_node_num`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'waypoints', `from_node_num`, count(*) FROM `waypoints` GROUP BY `from_node_num`;--> statement-breakpoint
CREATE TRIGGER `waypoints_counted` AFTER INSERT ON `waypoints` BEGIN
	INSERT INTO `row_counts` VALUES ('waypoints', NEW.`from_node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `waypoints_uncounted` AFTER DELETE ON `waypoints` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'waypoints' AND `owner` = OLD.`from_node_num`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'neighbors', `node_num`, count(*) FROM `neighbors` GROUP BY `node_num`;--> statement-breakpoint
CREATE TRIGGER `neighbors_counted` AFTER INSERT ON `neighbors` BEGIN
	INSERT INTO `row_counts` VALUES ('neighbors', NEW.`node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `neighbors_uncounted` AFTER DELETE ON `neighbors` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'neighbors' AND `owner` = OLD.`node_num`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'traceroutes', `to_node_num`, count(*) FROM `traceroutes` WHERE `requested_by` IS NULL GROUP BY `to_node_num`;--> statement-breakpoint
CREATE TRIGGER `traceroutes_counted` AFTER INSERT ON `traceroutes` WHEN NEW.`requested_by` IS NULL
BEGIN
	INSERT INTO `row_counts` VALUES ('traceroutes', NEW.`to_node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `traceroutes_uncounted` AFTER DELETE ON `traceroutes` WHEN OLD.`requested_by` IS NULL
BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'traceroutes' AND `owner` = OLD.`to_node_num`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'telemetry', `node_id`, count(*) FROM `telemetry` GROUP BY `node_id`;--> statement-breakpoint
CREATE TRIGGER `telemetry_counted` AFTER INSERT ON `telemetry` BEGIN
	INSERT INTO `row_counts` VALUES ('telemetry', NEW.`node_id`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `telemetry_uncounted` AFTER DELETE ON `telemetry` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'telemetry' AND `owner` = OLD.`node_id`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'telemetry_hourly', `node_id`, count(*) FROM `telemetry_hourly` GROUP BY `node_id`;--> statement-breakpoint
CREATE TRIGGER `telemetry_hourly_counted` AFTER INSERT ON `telemetry_hourly` BEGIN
	INSERT INTO `row_counts` VALUES ('telemetry_hourly', NEW.`node_id`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `telemetry_hourly_uncounted` AFTER DELETE ON `telemetry_hourly` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'telemetry_hourly' AND `owner` = OLD.`node_id`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'telemetry_daily', `node_id`, count(*) FROM `telemetry_daily` GROUP BY `node_id`;--> statement-breakpoint
CREATE TRIGGER `telemetry_daily_counted` AFTER INSERT ON `telemetry_daily` BEGIN
	INSERT INTO `row_counts` VALUES ('telemetry_daily', NEW.`node_id`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `telemetry_daily_uncounted` AFTER DELETE ON `telemetry_daily` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'telemetry_daily' AND `owner` = OLD.`node_id`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'positions', `node_id`, count(*) FROM `positions` GROUP BY `node_id`;--> statement-breakpoint
CREATE TRIGGER `positions_counted` AFTER INSERT ON `positions` BEGIN
	INSERT INTO `row_counts` VALUES ('positions', NEW.`node_id`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `positions_uncounted` AFTER DELETE ON `positions` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'positions' AND `owner` = OLD.`node_id`;
END;--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'receptions', m.`from_node_num`, count(*) FROM `receptions` r JOIN `messages` m ON m.`id` = r.`message_id` GROUP BY 2;--> statement-breakpoint
CREATE TRIGGER `receptions_counted` AFTER INSERT ON `receptions` BEGIN
	INSERT INTO `row_counts` SELECT 'receptions', `from_node_num`, 1 FROM `messages` WHERE `id` = NEW.`message_id` ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;--> statement-breakpoint
CREATE TRIGGER `receptions_uncounted` AFTER DELETE ON `receptions` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'receptions'
		AND `owner` = (SELECT `from_node_num` FROM `messages` WHERE `id` = OLD.`message_id`);
END;--> statement-breakpoint
-- While the message is there its sender is known.
CREATE TRIGGER `messages_forget_receptions` BEFORE DELETE ON `messages` BEGIN
	DELETE FROM `receptions` WHERE `message_id` = OLD.`id`;
END;--> statement-breakpoint
CREATE TRIGGER `waypoints_recounted` AFTER UPDATE OF `from_node_num` ON `waypoints` WHEN NEW.`from_node_num` <> OLD.`from_node_num` BEGIN
	UPDATE `row_counts` SET `n` = `n` - 1 WHERE `table_name` = 'waypoints' AND `owner` = OLD.`from_node_num`;
	INSERT INTO `row_counts` VALUES ('waypoints', NEW.`from_node_num`, 1) ON CONFLICT (`table_name`, `owner`) DO UPDATE SET `n` = `n` + 1;
END;