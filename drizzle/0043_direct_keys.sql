ALTER TABLE `messages` ADD `key_doubt` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `metrics_heard` integer DEFAULT false NOT NULL;