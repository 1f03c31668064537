import { Alert, Code, Group, Modal, Text } from '@mantine/core'
import { Copied } from '../parts/status.tsx'

/** A key, a token or a secret that was just made: its text is shown this once. */
export const Secret = ({
  title,
  text,
  about,
  onClose,
}: {
  title: string
  text: string | undefined
  about: string
  onClose: () => void
}) => (
  <Modal opened={text !== undefined} onClose={onClose} title={title} size="lg">
    <Alert color="yellow" title="Keep it now" mb="md">
      It is shown this once.
    </Alert>
    <Text size="sm" mb={6}>
      {about}
    </Text>
    <Group gap={4} wrap="nowrap">
      <Code className="secret" tabIndex={0}>
        {text}
      </Code>
      <Copied value={text ?? ''} label="Copy it" />
    </Group>
  </Modal>
)
