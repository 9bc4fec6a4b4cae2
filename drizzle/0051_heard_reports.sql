ALTER TABLE `messages` ADD `heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `neighbors` ADD `heard` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `waypoints` ADD `heard` integer DEFAULT false NOT NULL;