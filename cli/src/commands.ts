import type { Command } from './command.ts'
import { completion } from './commands/completion.ts'
import { contentPull } from './commands/content_pull.ts'
import { contentPush } from './commands/content_push.ts'
import { eventsTail } from './commands/events.ts'
import { init } from './commands/init.ts'
import { link } from './commands/link.ts'
import { login } from './commands/login.ts'
import { logout } from './commands/logout.ts'
import { open } from './commands/open.ts'
import { plan } from './commands/plan.ts'
import { projectsCreate, projectsList } from './commands/projects.ts'
import { pull } from './commands/pull.ts'
import { push } from './commands/push.ts'
import { sourcemapsDelete, sourcemapsList } from './commands/sourcemaps.ts'
import { sourcemapsPush } from './commands/sourcemaps_push.ts'
import { sql } from './commands/sql.ts'
import { types } from './commands/types.ts'
import { usersShow } from './commands/users.ts'
import { whoami } from './commands/whoami.ts'

/** In the order of the help. */
export const commands: readonly Command[] = [
  login,
  logout,
  whoami,
  projectsList,
  projectsCreate,
  init,
  link,
  pull,
  plan,
  push,
  contentPull,
  contentPush,
  sourcemapsPush,
  sourcemapsList,
  sourcemapsDelete,
  types,
  eventsTail,
  usersShow,
  sql,
  open,
  completion,
]
