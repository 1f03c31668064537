import { expect } from 'vitest'
import type { Project } from '#test/support/harness.ts'

/** Defines templates of mail, each with a key of its own, in a project or another one. */
export const templatesOf = (project: Project) => {
  let made = 0
  return async (fields: object = {}, on: Project = project) => {
    made += 1
    const template = await on.admin.post('/email/templates', {
      key: `t-${made}`,
      name: 'T',
      subject: 'Hello {{name}}',
      html: '<p>Hello <b>{{name}}</b></p>',
      text: 'Hello {{name}}',
      ...fields,
    })
    expect(template.status, template.text).toBe(201)
    return template.data as { id: string; key: string; version: number }
  }
}
