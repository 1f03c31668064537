import { Skeleton, Text, UnstyledButton } from '@mantine/core'
import { Terminal } from 'lucide-react'
import { nameOf, type Table, useTables } from './data.ts'

type Example = { readonly title: string; readonly about: string; readonly sql: string }

/** Three queries over what this project has. */
const examplesOf = (tables: readonly Table[]): readonly Example[] => {
  const own = tables.find(({ schema }) => schema === 'collections')
  const name = own ? nameOf(own, tables) : ''
  return [
    {
      title: 'New users per day',
      about: 'Of the last thirty days, and how many of them came back',
      sql: `select created_at::date as day,
       count(*) as users,
       count(*) filter (where last_seen_at > created_at + interval '1 day') as came_back
  from users
 where created_at > now() - interval '30 days'
 group by 1
 order by 1 desc`,
    },
    {
      title: 'Events by name',
      about: 'How often in the last week, and by how many users',
      sql: `select event_name,
       count(*) as events,
       count(distinct app_user_id) as users,
       max(occurred_at) as last
  from engagement_events
 where occurred_at > now() - interval '7 days'
 group by 1
 order by 2 desc`,
    },
    own
      ? {
          title: `Latest rows of ${own.name}`,
          about: 'With the user of each',
          sql: `select u.email, u.display_name, r.*
  from ${name} r
  left join users u on u.id = r.user_id
 order by r.created_at desc
 limit 50`,
        }
      : {
          title: 'Largest tables',
          about: 'What takes the space of this database',
          sql: `select c.relname as table_name,
       pg_size_pretty(pg_total_relation_size(c.oid)) as size,
       greatest(c.reltuples, 0)::bigint as rows
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
 where n.nspname in ('app', 'collections') and c.relkind = 'r'
 order by pg_total_relation_size(c.oid) desc
 limit 20`,
        },
  ]
}

export const Examples = ({ onChoose }: { onChoose: (sql: string) => void }) => {
  const { data, isPending } = useTables()
  if (isPending) return <Skeleton h={110} />
  return (
    <section aria-label="Examples">
      <Text size="sm" c="dimmed" mb="xs">
        Write a query and run it, or begin with one of these. Queries read and change nothing.
      </Text>
      <div className="cards">
        {examplesOf(data ?? []).map(({ title, about, sql }) => (
          <UnstyledButton key={title} className="card tile" onClick={() => onChoose(sql)}>
            <Terminal size={16} aria-hidden />
            <Text fw={600} size="sm">
              {title}
            </Text>
            <Text size="xs" c="dimmed">
              {about}
            </Text>
          </UnstyledButton>
        ))}
      </div>
    </section>
  )
}
