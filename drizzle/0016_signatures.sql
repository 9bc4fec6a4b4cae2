ALTER TABLE `messages` ADD `signed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `refused_public_key` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `spoof_claim` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `signed_at` integer;--> statement-breakpoint
ALTER TABLE `nodes` ADD `key_signed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `name_signed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `nodes` ADD `position_signed` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `packets` ADD `standing` text;