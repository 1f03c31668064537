/**
 * The part of the OpenAPI document that has the body of a path: the area of a project, such as `streaks`, or `account`. The build makes the parts by this rule
 * (`server/console/forms.ts`), and a form loads its own.
 */
export const partOf = (path: string): string =>
  /^\/v1\/admin\/projects\/\{projectId\}\/([^/]+)/.exec(path)?.[1] ?? 'account'
