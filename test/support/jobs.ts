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
