CREATE TABLE `packet_pages` (
	`first_id` integer PRIMARY KEY NOT NULL,
	`last_id` integer NOT NULL,
	`packets` integer NOT NULL,
	`t_first` integer NOT NULL,
	`t_last` integer NOT NULL,
	`replayed` integer NOT NULL,
	`ports` text NOT NULL,
	`receivers` text NOT NULL,
	`signed` text NOT NULL,
	`keys` text NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `packet_pages_replayed` ON `packet_pages` (`first_id`) WHERE replayed;
--> statement-breakpoint
-- Both forms share one sequence of ids, so that it has to be known before the first packet.
INSERT INTO `sqlite_sequence` (`name`, `seq`) SELECT 'packets', 0 WHERE NOT EXISTS (SELECT 1 FROM `sqlite_sequence` WHERE `name` = 'packets');
