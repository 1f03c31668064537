import { Button, Group, Select, TextInput } from '@mantine/core'
import { useState } from 'react'
import { useAddress } from '../parts/page.tsx'
import { type Entry, languageName, localesOf } from './data.ts'
import { LanguageCard } from './language_card.tsx'

const canonical = (text: string): string | undefined => {
  try {
    return Intl.getCanonicalLocales(text.trim())[0]
  } catch {
    return undefined
  }
}

/** Two languages beside each other, each to be written. */
export const Texts = ({ entry }: { entry: Entry }) => {
  const [{ left, right }, setAddress] = useAddress<'left' | 'right'>()
  const [added, setAdded] = useState('')
  const locales = localesOf(entry)
  const one = left ?? entry.default_locale
  const other = right ?? locales.find((locale) => locale !== one)
  const known = [...new Set([...locales, one, ...(other ? [other] : [])])]
  const data = known.map((value) => ({ value, label: `${languageName(value)} (${value})` }))
  const tag = canonical(added)
  return (
    <>
      <Group gap="xs" mb="md" align="flex-end">
        <Select
          label="Language"
          allowDeselect={false}
          data={data.filter(({ value }) => value !== other)}
          value={one}
          onChange={(next) => setAddress({ left: next ?? undefined })}
        />
        {other && (
          <Select
            label="Beside it"
            allowDeselect={false}
            data={data.filter(({ value }) => value !== one)}
            value={other}
            onChange={(next) => setAddress({ right: next ?? undefined })}
          />
        )}
        <TextInput
          label="Another language"
          placeholder="such as pt-BR"
          value={added}
          maxLength={64}
          w={150}
          onChange={(event) => setAdded(event.currentTarget.value)}
          autoComplete="off"
        />
        <Button
          variant="default"
          disabled={!tag || tag === one}
          onClick={() => {
            void setAddress({ right: tag })
            setAdded('')
          }}
        >
          Write it
        </Button>
      </Group>
      <div className="content-sides" data-one={other ? undefined : true}>
        {[one, ...(other ? [other] : [])].map((locale) => (
          <LanguageCard key={`${locale} ${entry.locales[locale]?.version ?? 0}`} entry={entry} locale={locale} />
        ))}
      </div>
    </>
  )
}
