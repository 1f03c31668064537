import { z } from 'zod'
import { administrator, endUser } from '#server/http/callers.ts'
import { definitions } from '#server/http/definitions.ts'
import { fieldsOf } from '#server/http/interface.ts'
import { area, group, route } from '#server/http/route.ts'
import { Cursor, cursorPage, Deleted, data, Flag, Limit, Uuid } from '#server/http/schemas.ts'
import type { Form } from '#server/http/words.ts'
import { draftWords } from '#server/routes/campaigns/shapes.ts'
import { pushCampaignRoutes } from '#server/routes/push/campaigns.ts'
import {
  Automation,
  automationFields,
  InboxItem,
  Message,
  messageWords,
  NewPreferences,
  Preferences,
  Stats,
} from '#server/routes/push/shapes.ts'

const message = { title: 'Your streak ends today', body: 'Keep it alive, {{display_name|friend}}.' }

const report = (verb: 'opened' | 'received', summary: string) =>
  route(`POST /deliveries/:deliveryId/${verb}`, summary, {
    call: `push_${verb}`,
    operationId: `reportPush${verb === 'opened' ? 'Opened' : 'Received'}`,
    replies: { 200: data(z.strictObject({ [verb]: z.literal(true) })) },
  })

const templateForm: Form = {
  Basics: { name: ['Name', 'For your team.'], key: true },
  Content: { message: ['Message', 'What devices show.'] },
}

const automationForm: Form = {
  Basics: { key: ['Key', 'Its name in statistics, such as `streak-at-risk`. It never changes.'], is_active: true },
  'What causes it': {
    trigger: ['Trigger', 'An event, or a user who enters or leaves a segment.'],
    delay_seconds: ['Delay', 'Seconds from the cause to the message.'],
    cancel_if_event: ['Cancel on', 'An event that stops the message during the delay.', { unset: 'Nothing' }],
  },
  Content: {
    message: ['Message', 'What devices show; leave it out to use a template.'],
    template_key: ['Template', 'The key of a template, in place of a message.'],
    inbox: ['Inbox', 'Keeps it in the inbox of the app as well.'],
  },
  Limits: {
    quiet_hours: ['Quiet hours', 'Users whose own time is within are skipped.', { unset: 'None' }],
    frequency_cap: ['Cap', 'Users who got so many messages lately are skipped.', { unset: 'None' }],
  },
}

export const push = area({
  stem: 'push',
  title: 'Push',
  part: 'Reach',
  about: 'Notifications: templates, campaigns, automations, the inbox.',
  words: {
    ...draftWords,
    ...messageWords,
    user_ids: ['Users', 'The ids of the users who get it.'],
    'trigger.event_name': ['Event', 'The event that causes the message.'],
    'trigger.filter': ['Only events that match', 'A filter on the properties of the event.'],
    'trigger.segment_id': ['Segment', 'Entering or leaving it causes the message.'],
    'trigger.on': ['When', 'As a user enters or leaves the segment.'],
    enabled: ['Push', 'Off: the user gets none.', { default: true }],
    categories: ['Categories', 'On or off for each, such as `{"news": false}`.'],
    quiet_hours: ['Quiet hours', 'No push in these hours of the user.', { unset: 'None' }],
  },
  routes: [
    ...group('/admin/projects/:projectId/push', administrator, [
      ...pushCampaignRoutes,
      ...definitions('push_template', {
        form: templateForm,
        path: '/templates',
        id: { key: z.string() },
        fields: fieldsOf('push_template', { message: Message }),
        refusals: { delete: { 409: ['CONFLICT'] } },
        example: { create: { key: 'streak-reminder', message }, update: { message: { ...message, title: 'Today' } } },
        summaries: {
          create: 'Define a template; at most 200',
          list: 'Templates, newest first',
          get: 'A template',
          update: 'Change a template',
          delete: 'Delete a template that no automation names',
        },
      }),
      ...definitions('push_automation', {
        form: automationForm,
        path: '/automations',
        id: { automationId: Uuid },
        fields: automationFields,
        row: Automation,
        example: {
          create: { key: 'streak-at-risk', trigger: { event_name: 'svc.streak.at_risk' }, message },
          update: { delay_seconds: 60 },
        },
        summaries: {
          create: 'Define an automation: an event or a segment that causes a message; at most 100',
          list: 'Automations, newest first',
          get: 'An automation',
          update: 'Change an automation',
          delete: 'Delete an automation with its deliveries',
        },
      }),
      route('GET /automations/:automationId/stats', 'Counts and rates of an automation', {
        call: 'push_automation_stats',
        stale: true,
        args: ({ params }) => ({ automation_id: undefined, id_or_key: params['automationId'] }),
        replies: { 200: data(Stats) },
      }),
    ]),
    ...group('/client/push', endUser, [
      route('GET /preferences', "The caller's preferences, with all categories of the project", {
        call: 'push_preferences_get',
        replies: { 200: data(Preferences) },
      }),
      route('PUT /preferences', "Replace the caller's preferences", {
        call: 'push_preferences_put',
        body: NewPreferences,
        patch: true,
        example: { enabled: true, categories: { news: false }, quiet_hours: { start: '22:00', end: '07:00' } },
        replies: { 200: data(Preferences) },
      }),
      report('opened', 'Report that a message was opened; the first time counts'),
      report('received', 'Report that a device has received a message; the first time counts'),
      route('GET /inbox', "The caller's inbox, newest first", {
        call: 'push_inbox',
        query: { unread: Flag(), cursor: Cursor, limit: Limit() },
        replies: { 200: cursorPage(InboxItem) },
      }),
      route('GET /inbox/unread-count', 'How many items of the inbox are unread', {
        call: 'push_inbox_unread_count',
        replies: { 200: data(z.strictObject({ count: z.int() })) },
      }),
      route('POST /inbox/:inboxItemId/read', 'Mark an item as read', {
        call: 'push_inbox_read',
        operationId: 'markPushInboxItemRead',
        replies: { 200: data(InboxItem) },
      }),
      route('POST /inbox/read-all', 'Mark all items as read', {
        call: 'push_inbox_read_all',
        operationId: 'markPushInboxRead',
        replies: { 200: data(z.strictObject({ read: z.int() })) },
      }),
      route('DELETE /inbox/:inboxItemId', 'Delete an item', {
        call: 'push_inbox_delete',
        operationId: 'deletePushInboxItem',
        replies: { 200: Deleted },
      }),
    ]),
  ],
})
