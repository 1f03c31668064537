import { Skeleton } from '@mantine/core'
import type { Row } from '../api.ts'
import type { FieldWords } from '../parts/form/field.ts'
import { OperationForm } from '../parts/form/form.tsx'
import { PageHead } from '../parts/page.tsx'
import { done, Failure } from '../parts/states.tsx'
import { useAnswer } from '../parts/stats.tsx'

const at = '/v1/admin/projects/{projectId}/reviews/settings'
const words: Readonly<Record<string, FieldWords>> = {
  reviews_auto_publish: { section: 'Reviews', help: 'Off: each review waits until somebody publishes it' },
  reviews_require_purchase: { section: 'Reviews' },
  prompt: { title: 'Whom apps may ask', section: 'Prompt for the app store', help: 'Apps ask before they show it' },
  'prompt.min_sessions': { title: 'Sessions before' },
  'prompt.gap_days': { title: 'Days between two prompts', help: '0 for no gap' },
}

/** How reviews are published, who writes them, and whom apps may ask for one in the app store. */
export const Page = () => {
  const { data, error, refetch } = useAnswer<Row>(`GET ${at}`)
  return (
    <>
      <PageHead
        title="Settings of reviews"
        back={{ title: 'Reviews', to: 'reviews' }}
        about="How reviews are published, who writes them, and whom apps may ask for one"
      />
      {error && <Failure error={error} onRetry={refetch} />}
      {!data && !error && <Skeleton h={420} />}
      {data && (
        <OperationForm
          key={JSON.stringify(data)}
          isPage
          operation={`PUT ${at}`}
          row={data}
          words={words}
          verb="Save settings"
          onDone={() => done('The settings are saved.')}
        />
      )}
    </>
  )
}
