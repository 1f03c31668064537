import { Button, Select, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { listContentVersions, rollbackContent } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { Confirm } from '../parts/dialogs.tsx'
import { Drawer } from '../parts/drawer.tsx'
import { List } from '../parts/list.tsx'
import { useAddress, useProject } from '../parts/page.tsx'
import { RowButton } from '../parts/row_button.tsx'
import { Empty, Failure, Rows, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { type Entry, languageName, localesOf, type Version } from './data.ts'
import { Differences } from './differences.tsx'

const authorWords = (author: Version['author']) =>
  (author as { type: string }).type === 'developer'
    ? 'a developer'
    : (author as { type: string }).type.replace(/_/g, ' ')

/** A version against another one: the one before it at first. */
const Compared = ({ entry, locale, version }: { entry: Entry; locale: string; version: number }) => {
  const { path } = useProject()
  const [against, setAgainst] = useState<string | null>(null)
  const { data, error } = useQuery({
    queryKey: ['content versions', entry.id, locale],
    queryFn: async () =>
      (await call(listContentVersions, { path: { ...path, idOrKey: entry.id }, query: { locale, limit: 60 } })).data,
  })
  if (error) return <Failure error={error} />
  if (!data) return <Rows count={4} />
  const one = data.find((known) => known.version === version)
  const before = Number(against ?? data.find((known) => known.version < version)?.version ?? version)
  const other = data.find((known) => known.version === before)
  return (
    <Stack gap="md">
      <Select
        label="Compared with"
        allowDeselect={false}
        data={data.map((known) => ({ value: String(known.version), label: `Version ${known.version}` }))}
        value={String(before)}
        onChange={setAgainst}
      />
      <Differences before={version === before ? {} : (other?.fields ?? {})} after={one?.fields ?? {}} />
    </Stack>
  )
}

/** The saves of a language, what changed in each, and the way back to one. */
export const Versions = ({ entry }: { entry: Entry }) => {
  const { path } = useProject()
  const [{ locale = entry.default_locale, version }, setAddress] = useAddress<'locale' | 'version'>()
  const [restored, setRestored] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const language = entry.locales[locale]
  const rollback = (to: number) =>
    call(rollbackContent, { path: { ...path, idOrKey: entry.id }, body: { locale, version: to } })
  return (
    <>
      <Select
        label="Language"
        allowDeselect={false}
        mb="md"
        w={260}
        data={localesOf(entry).map((value) => ({ value, label: `${languageName(value)} (${value})` }))}
        value={locale}
        onChange={(next) => setAddress({ locale: next ?? undefined, version: undefined })}
      />
      <List<Version>
        name="Versions"
        operation="GET /v1/admin/projects/{projectId}/content/{idOrKey}/versions"
        path={{ idOrKey: entry.id }}
        query={{ locale }}
        keyOf={(one) => String(one.version)}
        columns={[
          {
            title: 'Version',
            show: (one) => (
              <RowButton onClick={() => setAddress({ version: String(one.version) }, false)}>
                Version {one.version}
              </RowButton>
            ),
          },
          {
            title: 'State',
            show: (one) =>
              one.version === language?.published_version ? (
                <Status value="published" meaning="good" />
              ) : one.version === language?.version ? (
                <Status value="newest" />
              ) : (
                '—'
              ),
          },
          { title: 'By', show: (one) => authorWords(one.author) },
          { title: 'Saved', show: (one) => <When at={one.created_at} /> },
          {
            title: 'Restore',
            show: (one) =>
              one.version === language?.version ? (
                <Text size="sm" c="dimmed" component="span">
                  current
                </Text>
              ) : (
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Restore version ${one.version}`}
                  onClick={() => {
                    setRestored(one.version)
                    setOpen(true)
                  }}
                >
                  Restore
                </Button>
              ),
          },
        ]}
        empty={<Empty title="Nothing is saved yet" />}
      />
      <Drawer
        opened={version !== undefined}
        onClose={() => setAddress({ version: undefined })}
        title={`${languageName(locale)}, version ${version}`}
        size="lg"
      >
        {version !== undefined && (
          <Compared key={`${locale} ${version}`} entry={entry} locale={locale} version={Number(version)} />
        )}
      </Drawer>
      <Confirm
        title={`Restore version ${restored}`}
        verb="Restore"
        said={`${languageName(locale)} is as in version ${restored}.`}
        isOpen={isOpen}
        isDangerous={false}
        onClose={() => setOpen(false)}
        run={() => rollback(restored)}
      >
        The text of version {restored} is saved as a new version. Apps see it when it is published.
      </Confirm>
    </>
  )
}
