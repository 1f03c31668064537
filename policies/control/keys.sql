alter table app.secret_keys enable row level security;
alter table app.secret_reseals enable row level security;
