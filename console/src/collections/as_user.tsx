import { Alert, Text } from '@mantine/core'
import { type Collection, policySentence } from './data.ts'
import type { Condition } from './filters.ts'
import { UserName } from './names.tsx'

/** What a user of the app is let see, where that is known without the server. */
export const seenBy = ({ read_policy, owner_scope }: Collection, userId: string): readonly Condition[] | undefined => {
  if (read_policy === 'public') return []
  if (read_policy === 'owner' && owner_scope === 'user') return [{ column: 'user_id', op: 'eq', value: userId }]
  return undefined
}

/** Says whose rows are shown, and whether they are all that this user sees. */
export const AsUser = ({ collection, userId }: { collection: Collection; userId: string }) => (
  <Alert color="gray" py={8}>
    <Text size="sm">
      As <UserName id={userId} />:{' '}
      {seenBy(collection, userId) === undefined
        ? `${policySentence('read', collection.read_policy, collection.owner_scope)}, so that these rows may be more than they see. “How it is found” has the rule that the database applies.`
        : `${policySentence('read', collection.read_policy, collection.owner_scope)}. These are the rows that they see.`}
    </Text>
  </Alert>
)
