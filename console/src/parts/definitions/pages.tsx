import { Definition } from './definition.tsx'
import { DefinitionList } from './definition_list.tsx'
import type { Kind } from './kind.ts'
import { NewDefinition } from './new_definition.tsx'

/** The three modules of a kind's pages. */
export const pagesOf = (kind: Kind) => ({
  List: () => <DefinitionList kind={kind} />,
  New: () => <NewDefinition kind={kind} />,
  One: () => <Definition kind={kind} />,
})
