import { Alert, MantineProvider } from '@mantine/core'
import { ModalsProvider } from '@mantine/modals'
import { Notifications, notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { createRoot } from 'react-dom/client'
import { onSession, queries, renew, waits } from './api.ts'
import { router } from './router.tsx'
import { theme } from './theme.ts'

const text = (seconds: number) =>
  `This session was renewed often within a minute. The console goes on by itself in ${seconds} seconds.`
const root = createRoot(document.getElementById('console') as HTMLElement)
let isShown = false

waits.add((seconds) => {
  // the session is not known yet, nor therefore the page: the wait is all there is to show
  if (!isShown) root.render(<Wait text={text(seconds)} />)
  else
    notifications.show({
      id: 'wait',
      color: 'yellow',
      title: 'The server asks to wait',
      message: text(seconds),
      autoClose: seconds * 1000,
    })
})

const Wait = ({ text }: { text: string }) => (
  <Frame>
    <main className="wait">
      <Alert color="yellow" title="The server asks to wait" role="status">
        {text}
      </Alert>
    </main>
  </Frame>
)

const Frame = ({ children }: { children: ReactNode }) => (
  <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
    {children}
  </MantineProvider>
)

onSession(async (isSignedIn, isByChoice) => {
  if (isSignedIn) return
  const to = location.pathname.startsWith('/console/sign-in') ? undefined : location.pathname.slice('/console'.length)
  await router.navigate({ to: '/sign-in', search: (isByChoice ? {} : { to, ended: true }) as never })
  // what is shown would be asked for again, without a session; and whoever signs in next may be somebody else
  queries.clear()
})
// a server that cannot be reached is told by the page that asks it
await renew().catch(() => undefined)
isShown = true
root.render(
  <Frame>
    <QueryClientProvider client={queries}>
      <ModalsProvider>
        <Notifications position="bottom-right" limit={8} />
        <RouterProvider router={router} />
      </ModalsProvider>
    </QueryClientProvider>
  </Frame>,
)
