import { Kbd, Modal, Table } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useProject } from '../parts/page.tsx'

/** `g` and then one of these opens a page of the project. */
const places: Readonly<Record<string, readonly [string, string]>> = {
  o: ['', 'Overview'],
  a: ['events', 'Activity'],
  u: ['users', 'Users'],
  c: ['collections', 'Collections'],
  s: ['streaks', 'Streaks'],
  l: ['leaderboards', 'Leaderboards'],
  f: ['flags', 'Flags'],
  m: ['moderation', 'Moderation'],
  k: ['keys', 'Keys'],
}

const isTyping = (target: EventTarget | null) =>
  target instanceof Element && target.closest('input, textarea, select, [contenteditable], [role=grid], .code') !== null

/** The keys of the whole console, and `?`, which shows them. */
export const Keys = () => {
  const [isShown, setShown] = useState(false)
  const { projectId, at } = useProject()
  const go = useNavigate()
  useEffect(() => {
    let begun = 0
    const press = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
      if (event.key === '?') setShown((before) => !before)
      const place = Date.now() - begun < 1500 ? places[event.key] : undefined
      begun = event.key === 'g' ? Date.now() : 0
      if (place && projectId) void go({ to: at(place[0]) as never })
    }
    addEventListener('keydown', press)
    return () => removeEventListener('keydown', press)
  }, [projectId, at, go])
  return (
    <Modal opened={isShown} onClose={() => setShown(false)} title="Keys">
      <Table>
        <Table.Tbody>
          <Table.Tr>
            <Table.Td>
              <Kbd>Ctrl</Kbd> <Kbd>K</Kbd> or <Kbd>/</Kbd>
            </Table.Td>
            <Table.Td>Search</Table.Td>
          </Table.Tr>
          {Object.entries(places).map(([key, [, title]]) => (
            <Table.Tr key={key}>
              <Table.Td>
                <Kbd>g</Kbd> <Kbd>{key}</Kbd>
              </Table.Td>
              <Table.Td>{title}</Table.Td>
            </Table.Tr>
          ))}
          <Table.Tr>
            <Table.Td>
              <Kbd>?</Kbd>
            </Table.Td>
            <Table.Td>Show or hide this</Table.Td>
          </Table.Tr>
        </Table.Tbody>
      </Table>
    </Modal>
  )
}
