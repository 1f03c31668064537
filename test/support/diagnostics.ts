import { expect } from 'vitest'
import type { Client, Project } from '#test/support/harness.ts'

/** Reports of a project, each by a device of its own, and the issues that they make. */
export const diagnosticsOf = (project: Project) => {
  const send = async (fields: object | readonly object[], client: Client = project.app) => {
    const reports = [fields].flat().map((each) => ({ kind: 'error', level: 'error', message: 'Broken', ...each }))
    const answer = await client.post('/client/diagnostics/reports', { reports })
    expect(answer.status, answer.text).toBe(202)
    return answer.data as { accepted: number; dropped: number }
  }
  const issues = async (query = ''): Promise<any[]> => {
    const answer = await project.admin.get(`/diagnostics/issues${query}`)
    expect(answer.status, answer.text).toBe(200)
    return answer.data
  }
  return {
    send,
    issues,
    only: async () => {
      const [issue, ...more] = await issues()
      expect(more).toEqual([])
      return issue
    },
    reportsOf: async (id: string): Promise<any[]> =>
      (await project.admin.get(`/diagnostics/issues/${id}/reports`)).data,
    set: async (id: string, status: string) => {
      const answer = await project.admin.patch(`/diagnostics/issues/${id}`, { status })
      expect(answer.status, answer.text).toBe(200)
      return answer.data
    },
    clear: async () => {
      await project.sql('delete from app.diagnostic_issues')
      await project.sql('delete from app.rate_limits')
    },
  }
}
