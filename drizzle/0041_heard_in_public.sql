CREATE TABLE `channel_hearings` (
	`node_id` integer NOT NULL,
	`channel` integer NOT NULL,
	`first_heard` integer NOT NULL,
	`last_heard` integer NOT NULL,
	`hops_away` integer,
	`via_mqtt` integer NOT NULL,
	PRIMARY KEY(`node_id`, `channel`)
);
--> statement-breakpoint
ALTER TABLE `messages` ADD `withheld` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE TRIGGER `nodes_hearings_forgotten` AFTER DELETE ON `nodes` BEGIN
	DELETE FROM `channel_hearings` WHERE `node_id` = old.`id`;
END;--> statement-breakpoint
-- What the packet log shows: whom everybody could hear on which channel. Whether they allow it to be passed on was not stored.
INSERT INTO `channel_hearings` SELECT n.`id`, p.`channel`, min(p.`t`), max(p.`t`), NULL, n.`via_mqtt`
	FROM `packets` p CROSS JOIN `nodes` n ON n.`node_num` = p.`from_node_num`
	WHERE p.`port` IS NOT NULL AND NOT p.`pki_encrypted` AND p.`to_node_num` = 4294967295 AND p.`standing` IS NOT 'spoofed'
	GROUP BY n.`id`, p.`channel`;--> statement-breakpoint
-- Of nodes that are no longer in the log, the channel that they were last heard on is known.
INSERT INTO `channel_hearings` SELECT n.`id`, n.`channel`, n.`first_heard`, n.`last_heard`, n.`hops_away`, n.`via_mqtt` FROM `nodes` n
	WHERE n.`channel` IS NOT NULL AND n.`last_heard` IS NOT NULL AND NOT EXISTS (SELECT 1 FROM `packets` p WHERE p.`from_node_num` = n.`node_num`);--> statement-breakpoint
-- What the packet log shows to have been sent to one node: 8589934592 + its number is the channel of that.
UPDATE `positions` SET `channel` = s.`channel` FROM (
	SELECT n.`id` AS `node_id`, coalesce(p.`payload` ->> '$.fix.time', p.`t`) AS `t`, 8589934592 + p.`to_node_num` AS `channel`
	FROM `packets` p CROSS JOIN `nodes` n ON n.`node_num` = p.`from_node_num` WHERE p.`port` = 3 AND (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`)))) s
	WHERE `positions`.`node_id` = s.`node_id` AND `positions`.`t` = s.`t`;--> statement-breakpoint
UPDATE `nodes` SET `position_channel` = s.`channel` FROM (
	SELECT p.`from_node_num`, coalesce(p.`payload` ->> '$.fix.time', p.`t`) AS `t`, 8589934592 + p.`to_node_num` AS `channel`
	FROM `packets` p WHERE p.`port` = 3 AND (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`)))) s
	WHERE `nodes`.`node_num` = s.`from_node_num` AND `nodes`.`position_time` = s.`t`;--> statement-breakpoint
-- The trigger kept the same position under its old channel.
DELETE FROM `channel_positions` WHERE EXISTS (SELECT 1 FROM `nodes` n WHERE n.`id` = `channel_positions`.`node_id`
	AND n.`position_channel` >= 8589934592 AND n.`position_time` IS `channel_positions`.`t`);--> statement-breakpoint
UPDATE `telemetry` SET `channel` = s.`channel` FROM (
	SELECT n.`id` AS `node_id`, coalesce(p.`payload` ->> '$.time', p.`t`) AS `t`, 8589934592 + p.`to_node_num` AS `channel`
	FROM `packets` p CROSS JOIN `nodes` n ON n.`node_num` = p.`from_node_num` WHERE p.`port` = 67 AND (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`)))) s
	CROSS JOIN `metrics` m WHERE `telemetry`.`node_id` = s.`node_id` AND `telemetry`.`metric` = m.`id` AND `telemetry`.`t` = s.`t`;--> statement-breakpoint
INSERT INTO `telemetry_dirty` SELECT DISTINCT n.`id`, m.`id`, x.`t` - x.`t` % 3600000
	FROM `packets` p CROSS JOIN `nodes` n ON n.`node_num` = p.`from_node_num` CROSS JOIN `metrics` m
	CROSS JOIN `telemetry` x ON x.`node_id` = n.`id` AND x.`metric` = m.`id` AND x.`t` = coalesce(p.`payload` ->> '$.time', p.`t`)
	WHERE p.`port` = 67 AND (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`))) ON CONFLICT DO NOTHING;--> statement-breakpoint
UPDATE `nodes` SET `metrics_channel` = s.`channel` FROM (
	SELECT p.`from_node_num`, coalesce(p.`payload` ->> '$.time', p.`t`) AS `t`, 8589934592 + p.`to_node_num` AS `channel`
	FROM `packets` p WHERE p.`port` = 67 AND (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`)))) s
	WHERE `nodes`.`node_num` = s.`from_node_num` AND `nodes`.`device_metrics_time` = s.`t`;--> statement-breakpoint
DELETE FROM `channel_metrics` WHERE EXISTS (SELECT 1 FROM `nodes` n WHERE n.`id` = `channel_metrics`.`node_id`
	AND n.`metrics_channel` >= 8589934592 AND n.`device_metrics_time` IS `channel_metrics`.`t`);--> statement-breakpoint
-- The latest packet decides: a waypoint and the report of neighbours were replaced by each.
UPDATE `waypoints` SET `channel` = s.`channel` FROM (
	SELECT p.`payload` ->> '$.waypoint.id' AS `id`, p.`from_node_num`, max(p.`id`), 8589934592 + p.`to_node_num` AS `channel`, (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`))) AS `is_direct`
	FROM `packets` p WHERE p.`port` = 8 GROUP BY 1, 2) s
	WHERE `waypoints`.`id` = s.`id` AND `waypoints`.`from_node_num` = s.`from_node_num` AND s.`is_direct`;--> statement-breakpoint
UPDATE `neighbors` SET `channel` = s.`channel` FROM (
	SELECT p.`from_node_num`, max(p.`id`), 8589934592 + p.`to_node_num` AS `channel`, (p.`pki_encrypted` OR (p.`to_node_num` <> 4294967295 AND NOT (p.`standing` IS 'own' AND p.`to_node_num` = p.`from_node_num`))) AS `is_direct`
	FROM `packets` p WHERE p.`port` = 71 GROUP BY 1) s
	WHERE `neighbors`.`node_num` = s.`from_node_num` AND s.`is_direct`;
