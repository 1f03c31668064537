import { CriteriaEditor } from './criteria_editor.tsx'
import type { Editor, EditorOf } from './field.ts'
import { FilterEditor } from './filter_editor.tsx'
import { PropertiesEditor } from './properties_editor.tsx'
import { RewardEditor } from './reward_editor.tsx'
import { StepEditor } from './step_editor.tsx'
import { UserListEditor } from './user_list_editor.tsx'

/** Editors of named schemas of the OpenAPI document. */
const bySchema: Readonly<Record<string, Editor>> = {
  Filter: FilterEditor,
  Reward: RewardEditor,
  Criteria: CriteriaEditor,
}

/** Editors of properties that the document says no more about than that they are objects. */
const byProperty: readonly (readonly [RegExp, Editor])[] = [
  [/^(event_)?filter$/, FilterEditor],
  [/^(reward(_referrer|_referee)?|use_effect)$/, RewardEditor],
  [/^criteria$/, CriteriaEditor],
  [/^(metadata|store_metadata|display)$/, PropertiesEditor],
]

export const editorOf: EditorOf = (schema, property, isAnyObject, path) => {
  const named = schema === undefined ? undefined : bySchema[schema]
  if (property === 'user_ids') return UserListEditor
  if (named || !isAnyObject) return named
  if (path.replace(/\.\d+/g, '') === 'steps.config') return StepEditor
  return byProperty.find(([name]) => name.test(property))?.[1]
}
