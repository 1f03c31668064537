/** The names of databases under a prefix (DATABASE_PREFIX). */

export const controlName = (prefix: string) => `${prefix}_control`
export const templateName = (prefix: string) => `${prefix}_template`
export const tenantName = (prefix: string, projectId: string) => `${prefix}_${projectId.replaceAll('-', '')}`
