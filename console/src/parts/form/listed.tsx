import { ActionIcon, Button, Card, Group, Stack, Text } from '@mantine/core'
import { Plus, Trash2 } from 'lucide-react'
import { type FormState, type Frame, type InnerFields, valueAt } from './field.ts'
import { Labelled } from './labelled.tsx'
import { isObject, type Schema } from './schema.ts'

const nameOfItem = (value: unknown): string | undefined => {
  const item = isObject(value) ? value : {}
  const name = item['display_name'] || item['name'] || item['title'] || item['key']
  return typeof name === 'string' ? name : undefined
}

/** Several objects of one shape, each as a card with its fields. */
export const Listed = ({
  form,
  frame,
  item,
  maxItems,
  fields,
}: {
  form: FormState
  frame: Frame
  item: Schema
  maxItems: number | undefined
  fields: InnerFields
}) => {
  const { path, label, help, error } = frame
  const items = (valueAt(form.getValues(), path) as unknown[] | undefined) ?? []
  return (
    <Labelled id={`${path}-label`} label={label} help={help} error={error}>
      <Stack gap="xs" mt={6}>
        {items.map((value, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the items have no identifier
          <Card withBorder p="md" key={at}>
            <Group justify="space-between" mb={6}>
              <Text size="sm" c="dimmed">
                {nameOfItem(value) ?? at + 1}
              </Text>
              <ActionIcon
                variant="subtle"
                color="gray"
                aria-label={`Remove ${label} ${at + 1}`}
                onClick={() => form.removeListItem(path, at)}
              >
                <Trash2 size={15} />
              </ActionIcon>
            </Group>
            {fields(item, `${path}.${at}`)}
          </Card>
        ))}
        <div>
          <Button
            variant="default"
            size="xs"
            leftSection={<Plus size={14} />}
            disabled={maxItems !== undefined && items.length >= maxItems}
            onClick={() => form.setFieldValue(path, [...items, {}])}
          >
            Add
          </Button>
        </div>
      </Stack>
    </Labelled>
  )
}
