import { Skeleton, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getProject } from '../../../sdk/src/generated/admin.ts'
import { call } from '../api.ts'
import type { FieldWords } from '../parts/form/field.ts'
import { OperationForm } from '../parts/form/form.tsx'
import { Card, Facts, PageHead, useProject } from '../parts/page.tsx'
import { done, Failure, When } from '../parts/states.tsx'
import { Id } from '../parts/status.tsx'

const words: Readonly<Record<string, FieldWords>> = {
  name: { section: 'Project' },
  platform: { section: 'Project', choices: { ios: 'iOS', android: 'Android', all: 'All' } },
  environment: { section: 'Project', choices: { development: 'Development', production: 'Production' } },
  bundle_id: { section: 'Sign-in' },
  google_oauth_client_id: { section: 'Sign-in' },
  magic_link_redirect_url: { section: 'Sign-in' },
  auth_email_brand_name: { section: 'Sign-in' },
  default_from_email: { section: 'Sender of mail' },
  default_from_name: { section: 'Sender of mail' },
  default_reply_to: { section: 'Sender of mail' },
  user_search_enabled: { section: 'Ways in' },
  graphql_enabled: { section: 'Ways in' },
  rest_enabled: { section: 'Ways in' },
  anonymous_reads: { section: 'Ways in' },
}

/** What a project is called, how its users sign in, who its mail is from, and which ways in are open. */
export const Page = () => {
  const { path } = useProject()
  const { data, error, refetch } = useQuery({
    queryKey: ['project', path.projectId],
    queryFn: () => call(getProject, { path }),
  })
  const project = data?.data
  return (
    <>
      <PageHead title="General" about="Name, sign-in, sender and the ways in of this project" />
      {error && <Failure error={error} onRetry={refetch} />}
      {!project && !error && <Skeleton h={420} />}
      {project && (
        <Stack>
          <OperationForm
            key={project.updated_at}
            isPage
            operation="PATCH /v1/admin/projects/{projectId}"
            row={project}
            verb="Save"
            words={words}
            onDone={() => done('Saved.')}
          />
          <div className="narrow">
            <Card title="About this project">
              <Facts
                facts={[
                  ['Id', <Id key="id" value={project.id} />],
                  ['Plan', project.effective_tier],
                  ['Made', <When key="made" at={project.created_at} />],
                ]}
              />
            </Card>
          </div>
        </Stack>
      )}
    </>
  )
}
