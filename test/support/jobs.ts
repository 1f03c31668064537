import type { Harness, Project } from '#test/support/harness.ts'
import { loadTasks } from '#workers/task.ts'

/** Runs the job of an operation, as a worker would, and answers how the operation stands. */
export const runOperationJob = async (harness: Harness, project: Project, task: string, operationId: string) => {
  const { jobs } = await loadTasks()
  const found = jobs.find(({ name }) => name === task)
  if (!found) throw new Error(`there is no job ${task}`)
  await found.run(harness.running.services, { operation_id: operationId })
  return (await project.admin.get(`/operations/${operationId}`)).data
}

/** As after some seconds in which no worker of this installation sent a heartbeat: a worker that starts next unlocks the jobs of those that were killed. */
export const endHeartbeats = (harness: Pick<Harness, 'control'>) =>
  harness.control(`update app.workers set heartbeat_at = heartbeat_at - interval '1 hour'`)
