import { Button, Group, Menu, Select, Stack, Text, TextInput } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { publishContent, setContentLocale, unpublishContent } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import { More } from '../parts/more.tsx'
import { Card, useProject } from '../parts/page.tsx'
import { done, Failure, failed, useRefresh, When } from '../parts/states.tsx'
import { Status } from '../parts/status.tsx'
import { useUnsaved } from '../parts/unsaved.tsx'
import { type Entry, type Fields, languageName, namesOf, stateWords } from './data.ts'
import { FieldInput } from './field_input.tsx'
import { useDeclared } from './kinds.ts'
import { Schedule } from './schedule.tsx'

const kinds: Readonly<Record<string, unknown>> = { Text: '', Number: 0, 'On or off': false, Structured: {} }

const AddField = ({ taken, onAdd }: { taken: readonly string[]; onAdd: (name: string, value: unknown) => void }) => {
  const [name, setName] = useState('')
  const [kind, setKind] = useState('Text')
  const isGood = name !== '' && !taken.includes(name)
  return (
    <Group gap="xs" align="flex-end">
      <TextInput
        label="New field"
        placeholder="such as title"
        maxLength={64}
        value={name}
        error={taken.includes(name) && 'It is there already'}
        onChange={(event) => setName(event.currentTarget.value)}
        autoComplete="off"
      />
      <Select
        aria-label="What the new field holds"
        allowDeselect={false}
        data={Object.keys(kinds)}
        value={kind}
        w={130}
        onChange={(next) => setKind(next ?? 'Text')}
      />
      <Button
        variant="default"
        disabled={!isGood}
        onClick={() => {
          onAdd(name, kinds[kind])
          setName('')
        }}
      >
        Add field
      </Button>
    </Group>
  )
}

/** One language of an entry: its fields, whether apps see them, and what can be done with it. */
export const LanguageCard = ({ entry, locale }: { entry: Entry; locale: string }) => {
  const { path } = useProject()
  const refresh = useRefresh()
  const language = entry.locales[locale]
  const home = entry.locales[entry.default_locale]?.fields ?? {}
  const isHome = locale === entry.default_locale
  const saved: Fields = language?.fields ?? {}
  const [fields, setFields] = useState(saved)
  const [isScheduling, setScheduling] = useState(false)
  const at = { ...path, idOrKey: entry.id, locale }
  const isChanged = JSON.stringify(fields) !== JSON.stringify(saved)
  const work = useMutation({
    mutationFn: () => call(setContentLocale, { path: at, body: { fields } }),
    onSuccess: async ({ data }) => {
      done(`${languageName(locale)} is saved as version ${data.version}.`)
      await refresh()
    },
  })
  // what is saved is no unsaved work, though the page began with less
  useUnsaved(isChanged, work)
  const set = (name: string, value: unknown) =>
    setFields(
      value === undefined
        ? Object.fromEntries(Object.entries(fields).filter(([known]) => known !== name))
        : { ...fields, [name]: value },
    )
  const act = (doing: Promise<unknown>, said: string) =>
    doing.then(() => {
      done(said)
      return refresh()
    }, failed)
  const declared = useDeclared(entry.content_type)
  // as the schema has them, then what entries had before it
  const names = [...new Set([...(declared?.keys() ?? []), ...namesOf(home, saved, fields)])].filter(
    (name) => isHome || declared?.get(name)?.localized !== false,
  )
  const publish = () => act(call(publishContent, { path: at, body: {} }), `${languageName(locale)} is published.`)
  const isLive = language !== undefined && language.published_version === language.version
  return (
    <Card
      title={languageName(locale)}
      actions={
        <Group gap="xs">
          {language && (
            <Status
              value={stateWords(language)}
              meaning={language.status === 'published' ? 'good' : language.status === 'scheduled' ? 'warn' : 'none'}
            />
          )}
          {language && (
            <More label={`More about ${languageName(locale)}`} isSmall>
              <Menu.Item onClick={() => setScheduling(true)}>Schedule</Menu.Item>
              {language.status !== 'draft' && (
                <Menu.Item
                  onClick={() =>
                    act(
                      call(unpublishContent, { path: at }),
                      language.status === 'scheduled'
                        ? `The schedule of ${languageName(locale)} is cancelled.`
                        : `Apps do not see ${languageName(locale)} any more.`,
                    )
                  }
                >
                  {language.status === 'scheduled' ? 'Cancel the schedule' : 'Withdraw'}
                </Menu.Item>
              )}
            </More>
          )}
        </Group>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          work.mutate()
        }}
      >
        <Stack gap="sm">
          <Text size="sm" c="dimmed" component="div">
            <span className="mono">{locale}</span>
            {isHome && ', the default language'}
            {language?.publish_at && (
              <>
                , will be published <When at={language.publish_at} />
              </>
            )}
            {!language && ', new'}
            {language?.published_at && !language.publish_at && (
              <>
                , since <When at={language.published_at} />
              </>
            )}
          </Text>
          {names.length === 0 && <Text size="sm">There are no fields yet: add the first below.</Text>}
          {names.map((name) => (
            <FieldInput
              key={name}
              label={name}
              lang={locale}
              declared={declared?.get(name)}
              value={fields[name] ?? undefined}
              instead={isHome ? '' : home[name]}
              onChange={(value) => set(name, value)}
            />
          ))}
          {declared?.size === 0 && <AddField taken={names} onAdd={set} />}
          {work.error && <Failure error={work.error} />}
          <Group gap="xs" justify="flex-end">
            {isChanged && (
              <Button variant="default" onClick={() => setFields(saved)}>
                Reset
              </Button>
            )}
            {language && !isChanged && !isLive && (
              <Button variant="default" onClick={publish}>
                Publish {languageName(locale)}
              </Button>
            )}
            <Button type="submit" loading={work.isPending} disabled={language !== undefined && !isChanged}>
              Save {languageName(locale)}
            </Button>
          </Group>
        </Stack>
      </form>
      {language && (
        <Schedule entry={entry} locale={locale} isOpen={isScheduling} onClose={() => setScheduling(false)} />
      )}
    </Card>
  )
}
