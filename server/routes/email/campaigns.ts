import { z } from 'zod'
import { checkRecipients, checkSenders } from '#server/email/senders.ts'
import { administrator } from '#server/http/callers.ts'
import { answer } from '#server/http/interface.ts'
import { area, group } from '#server/http/route.ts'
import { Email, JsonObject, SmallJson, Time, Uuid } from '#server/http/schemas.ts'
import { campaignRoutes } from '#server/routes/campaigns/routes.ts'
import { Counts, campaignShape, draftFields, draftForm, few, variantFields } from '#server/routes/campaigns/shapes.ts'
import { emailWords, From, TemplateKey } from '#server/routes/email/shapes.ts'

const Variant = z.object({ ...variantFields, template_key: TemplateKey })
const fields = {
  ...draftFields,
  template_key: TemplateKey,
  variables: SmallJson(20_000).nullish(),
  from: From.nullish(),
  reply_to: Email.nullish(),
  track: z.boolean('must be true or false').optional(),
  variants: z.array(Variant).max(10, few(10)).optional(),
}
const MailCounts = Counts.extend({ clicked: z.int() })
const rates = { open_rate: z.number(), conversion_rate: z.number(), click_rate: z.number() }

const Campaign = z.strictObject({
  ...campaignShape,
  template_key: z.string(),
  category: z.string(),
  variables: JsonObject,
  from: z.string().nullable(),
  reply_to: z.string().nullable(),
  track: z.boolean(),
  variants: z.array(Variant),
  counts: MailCounts,
})
const Delivery = answer('email_delivery_json', {
  campaign_id: Uuid,
  message_id: Uuid.nullable(),
  reason: z.enum(['no_address', 'suppressed', 'opted_out', 'quiet_hours', 'capped', 'holdout', 'cancelled']).nullable(),
})
const Stats = MailCounts.extend({
  ...rates,
  variants: z.array(MailCounts.extend({ key: z.string(), ...rates })),
  hours: z.array(MailCounts.omit({ targeted: true }).extend({ hour: Time })),
})
const Preview = z.strictObject({
  audience_count: z.int(),
  addresses: z.int(),
  by_locale: z.record(z.string(), z.int()),
  skipped: z.strictObject({
    no_address: z.int(),
    suppressed: z.int(),
    opted_out: z.int(),
    quiet: z.int(),
    capped: z.int(),
  }),
  rendered: z.strictObject({
    subject: z.string().nullable(),
    html: z.string().nullable(),
    text: z.string().nullable(),
    locale: z.string().nullable(),
    missing: z.array(z.string()),
  }),
})

export const emailCampaigns = area({
  stem: 'email',
  title: 'Email',
  part: 'Reach',
  about: 'Mail: templates, messages, campaigns, suppressions, preferences.',
  words: emailWords,
  routes: group(
    '/admin/projects/:projectId/email',
    administrator,
    campaignRoutes({
      channel: 'email',
      fields,
      Campaign,
      Preview,
      Delivery,
      Stats,
      example: { name: 'News of May', template_key: 'news' },
      form: draftForm({
        template_key: ['Template', 'One whose category is not transactional: users can unsubscribe from it.'],
        variables: ['Variables', 'The same for all users; other marks are properties of the user.'],
        from: ['From', 'An address, or a name and an address.', { unset: 'The sender of the project' }],
        reply_to: ['Reply to', 'The address that answers go to.'],
        track: ['Track', 'Counts who opens it and who follows its links.', { default: false }],
        variants: ['Variants', 'Templates that are tried against each other.', { default: [] }],
      }),
      contentCodes: ['INVALID_SENDER'],
      startCodes: [],
      testSummary: 'Queue the message of a campaign to up to 10 users now, all or none',
      testRefusals: { 400: ['TEMPLATE_VARIABLE_MISSING'], 409: ['SUPPRESSED'] },
      check: (context) => checkSenders(context, [context.body['from'] as string | null | undefined]),
      // its recipients are users, whoever that is
      checkStart: (context, { from }) => checkRecipients(context, [{ from: from as string | null | undefined }]),
      startRefusals: { 403: ['EMAIL_NOT_VERIFIED'] },
    }),
  ),
})
