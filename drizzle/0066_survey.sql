CREATE TABLE `coverage` (
	`id` integer PRIMARY KEY NOT NULL,
	`node_num` integer NOT NULL,
	`source_id` integer NOT NULL,
	`gateway` integer NOT NULL,
	`channel` integer NOT NULL,
	`bits` integer NOT NULL,
	`x` integer NOT NULL,
	`y` integer NOT NULL,
	`packets` integer NOT NULL,
	`snr` text NOT NULL,
	`rssi` text NOT NULL,
	`best_snr` real,
	`min_hops` integer,
	`max_hops` integer,
	`last_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `coverage_place` ON `coverage` (`node_num`,`source_id`,`gateway`,`channel`,`bits`,`x`,`y`);--> statement-breakpoint
CREATE TABLE `heard_links` (
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`packets` integer NOT NULL,
	`snr` real,
	`t` integer NOT NULL,
	PRIMARY KEY(`from_node_num`, `to_node_num`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `heard_links_t` ON `heard_links` (`t`);--> statement-breakpoint
CREATE INDEX `heard_links_to` ON `heard_links` (`to_node_num`);--> statement-breakpoint
CREATE TABLE `route_links` (
	`from_node_num` integer NOT NULL,
	`to_node_num` integer NOT NULL,
	`channel` integer NOT NULL,
	`start_num` integer NOT NULL,
	`end_num` integer NOT NULL,
	`snr` real,
	`t` integer NOT NULL,
	PRIMARY KEY(`from_node_num`, `to_node_num`, `channel`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `route_links_t` ON `route_links` (`t`);--> statement-breakpoint
CREATE INDEX `route_links_to` ON `route_links` (`to_node_num`);--> statement-breakpoint
CREATE TABLE `survey` (
	`id` integer PRIMARY KEY NOT NULL,
	`packet_id` integer NOT NULL,
	`version` integer NOT NULL
);
--> statement-breakpoint
CREATE TRIGGER `nodes_survey_forgotten` AFTER DELETE ON `nodes`
WHEN NOT EXISTS (SELECT 1 FROM `renumberings` WHERE `from_node_num` = old.`node_num` AND `undone_at` IS NULL) BEGIN
	DELETE FROM `coverage` WHERE `node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `heard_links` WHERE `from_node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `heard_links` WHERE `to_node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `route_links` WHERE `from_node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	DELETE FROM `route_links` WHERE `to_node_num` IN (SELECT old.`node_num` UNION SELECT `from_node_num` FROM `renumberings` WHERE `to_node_num` = old.`node_num` AND `undone_at` IS NULL);
	UPDATE `survey` SET `version` = `version` + 1;
END;
