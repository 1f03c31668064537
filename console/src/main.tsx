import { MantineProvider } from '@mantine/core'
import { ModalsProvider } from '@mantine/modals'
import { Notifications, notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import { onSession, queries, renew, waits } from './api.ts'
import { router } from './router.tsx'
import { theme } from './theme.ts'

waits.add((seconds) =>
  notifications.show({
    id: 'wait',
    color: 'yellow',
    title: 'The server asks to wait',
    message: `Many people sign in from your address. The console goes on by itself in ${seconds} seconds.`,
    autoClose: seconds * 1000,
  }),
)

const show = () =>
  createRoot(document.getElementById('console') as HTMLElement).render(
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={queries}>
        <ModalsProvider>
          <Notifications position="bottom-right" />
          <RouterProvider router={router} />
        </ModalsProvider>
      </QueryClientProvider>
    </MantineProvider>,
  )

onSession((isSignedIn) => {
  if (isSignedIn) return
  const to = location.pathname.startsWith('/console/sign-in') ? undefined : location.pathname.slice('/console'.length)
  void router.navigate({ to: '/sign-in', search: { to, ended: true } as never })
})
// a server that cannot be reached is told by the page that asks it
await renew().catch(() => undefined)
show()
