import { gzipSync } from 'node:zlib'
import { expect } from 'vitest'
import type { Harness, Project } from '#test/support/harness.ts'

/** Uploads of source maps as the command line makes them, and reports with their frames. */
export const sourceMapsOf = (harness: Harness, project: Project) => {
  /** A body of bytes, packed unless it is already. */
  const upload = async (release: string, bundle: string, map: string | Buffer, of = project) => {
    const query = new URLSearchParams({ release, bundle })
    const answer = await fetch(`${harness.url}/v1/admin/projects/${of.id}/diagnostics/source-maps?${query}`, {
      method: 'PUT',
      headers: { ...of.admin.headers, 'content-type': 'application/gzip' },
      body: new Uint8Array(typeof map === 'string' ? gzipSync(map) : map),
    })
    const { data, error } = (await answer.json()) as { data?: any; error?: any }
    return { status: answer.status, data, error }
  }
  return {
    upload,
    list: async (query = ''): Promise<any[]> => (await project.admin.get(`/diagnostics/source-maps${query}`)).data,
    /** The newest report of the only issue, with its frames. */
    shown: async (): Promise<any> => {
      const [issue] = (await project.admin.get('/diagnostics/issues')).data
      const [{ id }] = (await project.admin.get(`/diagnostics/issues/${issue.id}/reports`)).data
      const answer = await project.admin.get(`/diagnostics/issues/${issue.id}/reports/${id}`)
      expect(answer.status, answer.text).toBe(200)
      return answer.data
    },
  }
}

/** A small map of one source, with other fields. */
export const mapOf = (more: object = {}): string =>
  JSON.stringify({ version: 3, sources: ['a.ts'], sourcesContent: ['one\ntwo'], names: [], mappings: 'AACA', ...more })
