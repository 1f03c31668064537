/** A level, as the API has it. */
export type Level = {
  readonly level: number
  readonly xp_required: number
  readonly name: string | null
  readonly icon_url: string | null
  readonly reward: unknown
}
/** The path of the table of levels. */
export const operation = '/v1/admin/projects/{projectId}/xp/levels'
