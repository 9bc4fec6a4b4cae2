import { SYSTEM_PROBLEM_NAMES, SYSTEM_PROBLEMS } from '../../../shared/system-problems.ts'
import { type Family, info, single } from './exposition.ts'
import type { System } from '../status/schema.ts'

/** The page System for Prometheus. */
export function systemFamilies(system: System): Family[] {
  const { clock, instances, problems, queues, runs, signIns } = system
  return [
    {
      name: 'mesh_problems',
      type: 'gauge',
      help: 'What the page System finds wrong, by kind of problem.',
      samples: SYSTEM_PROBLEM_NAMES.map((problem) => ({
        labels: { problem, severity: SYSTEM_PROBLEMS[problem] },
        value: problems.filter(({ code }) => code === problem).length,
      })),
    },
    ...storageFamilies(system),
    ...backupFamilies(system),
    ...anchorFamilies(system),
    gauge('mesh_ingest_queue_events', 'Events that are heard but not stored yet.', queues.ingest),
    gauge('mesh_sending_queue_packets', 'Packets that wait to be passed to a radio.', queues.sending),
    gauge('mesh_alert_outbox_messages', 'Alert messages to be sent, counted up to 500.', queues.alerts),
    gauge('mesh_sign_ins_failed_last_day', 'Failed sign-ins of the last 24 hours, counted up to 500.', signIns.failed),
    gauge('mesh_instances', 'Processes on the same data directory.', instances?.length ?? null),
    gauge(
      'mesh_instance_on_duty',
      'Whether this process has the radios and the schedules.',
      instances === null ? null : Number(instances.some(({ isSelf, hasLease }) => isSelf && hasLease)),
    ),
    gauge(
      'mesh_clock_confirmed',
      'Whether the clock of the machine is trusted.',
      clock === null ? null : Number(clock.state === 'confirmed'),
    ),
    // Prometheus itself labels every metric with its job.
    {
      name: 'mesh_job_last_run_timestamp_seconds',
      type: 'gauge',
      help: 'When a job that the platform triggers ran last.',
      samples: runs.map(({ job, at }) => ({ labels: { task: job }, value: at / 1000 })),
    },
    {
      name: 'mesh_job_last_run_success',
      type: 'gauge',
      help: 'Whether the latest run of a job that the platform triggers succeeded.',
      samples: runs.map(({ job, ok }) => ({ labels: { task: job }, value: Number(ok) })),
    },
    ...releaseFamilies(system),
  ]
}

const gauge = (name: string, help: string, value: number | null): Family => single(name, 'gauge', help, value)
const seconds = (ms: number | null | undefined): number | null => (ms === null || ms === undefined ? null : ms / 1000)

function storageFamilies({ storage }: System): Family[] {
  const { databaseBytes, disk, forecast, roomBytes } = storage
  return [
    gauge('mesh_database_size_bytes', 'Size of the database.', databaseBytes),
    gauge('mesh_disk_size_bytes', 'Size of the disk of the data directory.', disk?.totalBytes ?? null),
    gauge('mesh_disk_free_bytes', 'Space on that disk that the service may use.', disk?.freeBytes ?? null),
    gauge(
      'mesh_disk_full',
      'Whether the disk is full, so that no packets are stored.',
      disk === null ? null : Number(disk.isFull),
    ),
    gauge('mesh_storage_room_bytes', 'Room for new rows, on the disk and inside the database.', roomBytes),
    gauge(
      'mesh_storage_full_timestamp_seconds',
      'When that room ends at the rate of the last week, if within ten years.',
      seconds(forecast?.fullAt),
    ),
  ]
}

/** Before the first run, success is NaN: 0 would report a failure (prometheus.io/docs/practices/instrumentation). */
function backupFamilies({ backups }: System): Family[] {
  if (backups === null) return []
  const { count, enabled, last, lastRun, lastSuccessAt, nextRunAt } = backups
  const ok = lastRun === null ? Number.NaN : Number(lastRun.ok)
  return [
    gauge('mesh_backups', 'Backups in the data directory.', count),
    gauge('mesh_backup_last_timestamp_seconds', 'When the latest backup was made.', seconds(last?.createdAt)),
    gauge('mesh_backup_last_size_bytes', 'Size of the latest backup.', last?.sizeBytes ?? null),
    gauge('mesh_backup_schedule_enabled', 'Whether there is a daily backup.', Number(enabled)),
    gauge('mesh_backup_next_run_timestamp_seconds', 'When the schedule runs next.', seconds(nextRunAt)),
    gauge('mesh_backup_run_timestamp_seconds', 'When the schedule ran last.', seconds(lastRun?.at)),
    gauge('mesh_backup_run_success', 'Whether the last run of the schedule succeeded. NaN: it has not run yet.', ok),
    gauge(
      'mesh_backup_run_last_success_timestamp_seconds',
      'When the latest successful run of the schedule began.',
      seconds(lastSuccessAt),
    ),
  ]
}

function anchorFamilies({ anchor, queues }: System): Family[] {
  if (anchor === null) return []
  return [
    gauge(
      'mesh_audit_anchor_up',
      'Whether the latest delivery of the audit log succeeded.',
      Number(anchor.failures === 0),
    ),
    gauge(
      'mesh_audit_anchor_waiting',
      'Anchors and entries of the audit log that are not delivered yet.',
      queues.anchor,
    ),
    gauge(
      'mesh_audit_anchor_last_delivery_timestamp_seconds',
      'When the audit log was last delivered.',
      seconds(anchor.deliveredAt),
    ),
  ]
}

function releaseFamilies({ release }: System): Family[] {
  if (release === null) return []
  const newer = release.isNewer && release.latest !== null ? [{ version: release.latest }] : []
  return [
    gauge(
      'mesh_release_check_timestamp_seconds',
      'When UPDATE_CHECK_URL was asked for the latest version.',
      seconds(release.askedAt),
    ),
    info('mesh_newer_release_info', 'A newer version that UPDATE_CHECK_URL names. Nothing proves it.', newer),
  ]
}
