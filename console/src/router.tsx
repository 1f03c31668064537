import { areas } from 'console:areas'
import {
  type AnyRoute,
  type AnyRouter,
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  type RouteComponent,
  redirect,
} from '@tanstack/react-router'
import { hasSession } from './api.ts'
import type { Page } from './areas.ts'
import { patiently } from './outage.ts'
import { Failure, Missing } from './parts/states.tsx'
import { Outside, Shell } from './shell/shell.tsx'

const guard = ({ location }: { location: { href: string } }) => {
  if (!hasSession()) throw redirect({ to: '/sign-in', search: { to: location.href } as never })
}

const searchOf = (search: Record<string, unknown>) => search
const shown = (load: Page['load']) => lazyRouteComponent(() => patiently(load), 'Page') as RouteComponent

const root = createRootRoute({ component: Outlet, notFoundComponent: Missing })
const project = createRoute({
  getParentRoute: () => root,
  path: '/projects/$projectId',
  component: Shell,
  beforeLoad: guard,
})
const outside = createRoute({ getParentRoute: () => root, id: 'outside', component: Outside, beforeLoad: guard })

const below = <Parent extends typeof project | typeof outside>(parent: Parent, { path, load }: Page) =>
  createRoute({
    getParentRoute: () => parent as never,
    path: `/${path}`,
    component: shown(load),
    validateSearch: searchOf,
  } as never)

/** Pages that belong to no project. */
const accountPages: readonly Page[] = [
  { path: '', load: () => import('./account/projects.tsx') },
  { path: 'account', load: () => import('./account/account.tsx') },
  { path: 'organizations/$organizationId', load: () => import('./account/organization.tsx') },
]

const signInPage = (path: string) =>
  createRoute({
    getParentRoute: () => root,
    path,
    component: shown(() => import('./account/sign_in.tsx')),
    validateSearch: searchOf,
  })

export const router: AnyRouter = createRouter({
  routeTree: (root as unknown as AnyRoute).addChildren([
    signInPage('/sign-in'),
    signInPage('/github'),
    outside.addChildren(accountPages.map((page) => below(outside, page)) as never),
    project.addChildren(areas.flatMap(({ pages }) => pages.map((page) => below(project, page))) as never),
  ] as never) as unknown as AnyRoute,
  basepath: '/console',
  defaultPreload: 'intent',
  defaultPendingMs: 200,
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) => <Failure error={error} onRetry={reset} />,
  defaultNotFoundComponent: Missing,
})
