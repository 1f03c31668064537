import { Button, Group, Select } from '@mantine/core'
import { Languages, Plus } from 'lucide-react'
import { List, SearchBox } from '../parts/list.tsx'
import { PageHead, ProjectLink, useAddress, useOpen } from '../parts/page.tsx'
import { Empty, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Entry, languageName, localesOf, stateWords } from './data.ts'

const to = ({ key }: Entry) => `content/${encodeURIComponent(key)}`

const States = ({ entry }: { entry: Entry }) => (
  <Group gap={6}>
    {localesOf(entry)
      .slice(0, 6)
      .map((locale) => {
        const language = entry.locales[locale]
        return (
          language && (
            <span key={locale} title={languageName(locale)}>
              <span className="mono">{locale}</span>{' '}
              <Status
                value={stateWords(language)}
                meaning={language.status === 'published' ? 'good' : (undefined as never)}
              />
            </span>
          )
        )
      })}
    {localesOf(entry).length > 6 && <span className="dimmed">and {localesOf(entry).length - 6} more</span>}
  </Group>
)

/** Texts in many languages, each with its own state. */
export const Page = () => {
  const open = useOpen()
  const [{ q, status, type }, setAddress] = useAddress<'q' | 'status' | 'type'>()
  const make = (
    <Button leftSection={<Plus size={16} />} onClick={() => open('content/new')}>
      New entry
    </Button>
  )
  return (
    <>
      <PageHead
        title="Content"
        about="Texts in many languages that change without a release of the app"
        actions={make}
      />
      <Group gap="xs" mb="sm">
        <SearchBox label="Search keys and texts" />
        <Select
          aria-label="Status"
          placeholder="Any status"
          clearable
          clearButtonProps={{ 'aria-label': 'Any status' }}
          data={['draft', 'scheduled', 'published']}
          value={status ?? null}
          onChange={(next) => setAddress({ status: next ?? undefined })}
        />
        {type && (
          <Button variant="default" onClick={() => setAddress({ type: undefined })}>
            Only {type}: show all types
          </Button>
        )}
      </Group>
      <List<Entry>
        name="Content"
        operation="GET /v1/admin/projects/{projectId}/content"
        query={{ search: q, status, content_type: type }}
        keyOf={({ id }) => id}
        to={to}
        columns={[
          {
            title: 'Entry',
            show: (entry) => (
              <>
                <ProjectLink to={to(entry)} className="mono">
                  {entry.key}
                </ProjectLink>
                <span className="cell-sub">{entry.content_type}</span>
              </>
            ),
          },
          { title: 'Languages', show: (entry) => <States entry={entry} /> },
          { title: 'Tags', show: ({ tags }) => tags.join(', ') || '—' },
          { title: 'Last change', show: ({ updated_at }) => <When at={updated_at} /> },
        ]}
        empty={
          q || status || type ? (
            <Empty title="Nothing matches" />
          ) : (
            <Empty icon={<Languages size={22} />} title="No content yet" action={make}>
              Banners, articles and help that you write here, in every language, and publish when you like.
            </Empty>
          )
        }
      />
    </>
  )
}
