ALTER TABLE `alert_deliveries` RENAME COLUMN "told" TO "notification";--> statement-breakpoint
ALTER TABLE `alerts` RENAME COLUMN "told_at" TO "notified_at";--> statement-breakpoint
ALTER TABLE `packets` RENAME COLUMN "standing" TO "trust_level";