/**
 * The register of SQLSTATEs: what our SQL raises, and what our code tells apart. `npm run check` (scripts/registers.ts) refuses one that is
 * written elsewhere and not here, and one here that nothing uses. failureOf in server/database/failures.ts says what each means to a request.
 */
export const sqlstates: Readonly<Record<string, string>> = {
  // raised by our own SQL; class TR is free of Postgres' own
  TR000: 'A refusal: internal.fail raises it with the answer as its detail, failureOf turns it into that answer.',
  TR001:
    'The collection has changed since its statement was compiled: server/collections/statements.ts compiles again.',
  TR002:
    'A notice of internal.return_setting behind the answer: server/database/call.ts passes it to the waker and the notifier.',
  TR003: 'Work that is undone on purpose, a dry run or one row of an import: caught in the function that raises it.',
  '40001':
    'serialization_failure: the call is repeated. referral_claim raises it when the owner of a code has changed meanwhile.',

  // of Postgres: the call is repeated, or answered 503 with Retry-After
  '25P04': 'transaction_timeout',
  '40P01': 'deadlock_detected',
  '53000': 'insufficient_resources',
  '53100': 'disk_full',
  '53200': 'out_of_memory',
  '53300': 'too_many_connections',
  '53400': 'configuration_limit_exceeded',
  '55P03': 'lock_not_available',
  '57014': 'query_canceled',

  // of Postgres: the database or the connection is gone, or the login is refused; 503
  '25001': 'active_sql_transaction: of a call that writes, the server has become a standby, which refuses its settings',
  '25006': 'read_only_sql_transaction: of a call that writes, the server has become a standby',
  '28000': 'invalid_authorization_specification',
  '28P01': 'invalid_password',
  '3D000': 'invalid_catalog_name: there is no such database',
  '42501': 'insufficient_privilege: of a database 503, of a row of a collection 403, of anything else a defect',
  '55000': 'object_not_in_prerequisite_state: a database that accepts no connections',
  '57P01': 'admin_shutdown',
  '57P02': 'crash_shutdown',
  '57P03': 'cannot_connect_now',
  '57P04': 'database_dropped',
  '57P05': 'idle_session_timeout',

  // of Postgres: a constraint, answered by its comment
  '23502': 'not_null_violation',
  '23503': 'foreign_key_violation',
  '23505': 'unique_violation',

  // of Postgres with the module safeupdate, whose error the REST access gives without it
  '21000': 'cardinality_violation: an update or a delete without a filter',

  // of Postgres: an object is not there, so the schema may be behind the program; or a kept plan is behind the schema
  '0A000': 'feature_not_supported: a kept plan whose result type changed is made anew',
  '3F000': 'invalid_schema_name',
  '42601': 'syntax_error: of a query that a developer wrote',
  '42703': 'undefined_column',
  '42704': 'undefined_object',
  '42883': 'undefined_function',
  '42P01': 'undefined_table',

  // of Postgres, while the program is loaded and databases are made
  '2BP01': 'dependent_objects_still_exist: the function is dropped and made again with what leans on it',
  '42725': 'ambiguous_function: the former signature is still there',
  '42P04': 'duplicate_database: another process was faster',
  '42P13': 'invalid_function_definition: a signature has changed',
  '55006': 'object_in_use: the template has connections, try again',
}
