CREATE TABLE `proven_packets` (
	`from_node_num` integer NOT NULL,
	`packet_id` integer NOT NULL,
	`t` integer NOT NULL,
	`proven` integer NOT NULL,
	PRIMARY KEY(`from_node_num`, `packet_id`)
) WITHOUT ROWID;
