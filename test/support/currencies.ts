import { expect } from 'vitest'
import type { Client, Harness } from '#test/support/harness.ts'

/** A project with currencies, and what tests of value ask again and again. */
export const createEconomy = async (harness: Harness) => {
  const project = await harness.project()
  let count = 0
  const currency = async (rules: Record<string, unknown> = {}) => {
    count += 1
    const code = `C${count}`
    const made = await project.admin.post('/currencies', { code, name: code, client_spendable: true, ...rules })
    expect(made.status, made.text).toBe(201)
    return code
  }
  /** A user with a server key's client: sessions end after an hour, server keys do not. */
  const someone = async () => {
    const user = await project.user()
    return { user, id: user.id, server: project.onBehalfOf(user.id) }
  }
  const give = async (userId: string, code: string, amount: number, more: Record<string, unknown> = {}) => {
    const answer = await project.admin.post('/currencies/transactions', {
      app_user_id: userId,
      adjustments: [{ currency_code: code, amount }],
      reason: 'test',
      ...more,
    })
    expect(answer.status, answer.text).toBe(201)
    return answer.data.transactions[0]
  }
  const balance = async (who: Client, code: string) => {
    const answer = await who.get('/client/currencies')
    expect(answer.status, answer.text).toBe(200)
    return answer.data.find((shown: { code: string }) => shown.code === code)
  }
  const spend = (who: Client, code: string, amount: unknown, headers?: Record<string, string>) =>
    who.post(`/client/currencies/${code}/spend`, { amount, reason: 'hint' }, headers)
  /** The ledger, oldest first, and that it is one: each row follows from the one before, and their sum is the balance. */
  const ledger = async (userId: string, code: string) => {
    const rows = await project.sql(
      `select amount::int, balance_after::int, reason, source_type, source_id, metadata from app.currency_transactions
        where app_user_id = $1 and currency_code = $2 order by id`,
      [userId, code],
    )
    let sum = 0
    for (const row of rows) {
      sum += row.amount
      expect(row.balance_after).toBe(sum)
      expect(sum).toBeGreaterThanOrEqual(0)
    }
    const [held] = await project.sql(
      'select balance::int from app.currency_balances where app_user_id = $1 and currency_code = $2',
      [userId, code],
    )
    expect(held?.balance ?? 0).toBe(sum)
    return rows as {
      amount: number
      balance_after: number
      reason: string
      source_type: string
      source_id: string
      metadata: any
    }[]
  }
  return { harness, project, currency, someone, give, balance, spend, ledger }
}
