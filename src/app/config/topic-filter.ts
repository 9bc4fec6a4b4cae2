/** A topic filter of MQTT, such as `msh/EU_868/#`. */
export const TOPIC_FILTER = /^(?:(?:\+|[^+#/\0]*)\/)*(?:\+|#|[^+#/\0]+)$/
