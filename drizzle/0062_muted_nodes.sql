ALTER TABLE `nodes` ADD `is_muted` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `radio_marks` ADD `is_muted` integer DEFAULT false NOT NULL;