import { Stack, Title } from '@mantine/core'
import type { FormProps } from './field.ts'
import { Fields } from './fields.tsx'
import { resolved, type Schema } from './schema.ts'

/** The fields of a form in cards, one for each section that the declaration names. */
export const Sections = ({ schema, ...rest }: FormProps & { readonly schema: Schema }) => {
  const { document, words } = rest
  const sections = new Map<string, Record<string, Schema>>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const section = words[name]?.section ?? resolved(property, document)['x-form']?.section ?? ''
    sections.set(section, { ...sections.get(section), [name]: property })
  }
  // in the order of the words that name them, where there are some
  const named = Object.values(words).flatMap(({ section }) => section ?? [])
  const place = (title: string) => (named.includes(title) ? named.indexOf(title) : named.length)
  const ordered = [...sections].sort(([one], [other]) => place(one) - place(other))
  const shown = ordered.filter(([, properties]) => Object.keys(properties).some((name) => !words[name]?.isHidden))
  return (
    <Stack gap="md">
      {shown.map(([title, properties]) => (
        <section key={title} className="card" aria-label={title || undefined}>
          {title && (
            <Title order={2} mb="sm">
              {title}
            </Title>
          )}
          <Fields {...rest} schema={{ ...schema, properties }} />
        </section>
      ))}
    </Stack>
  )
}
