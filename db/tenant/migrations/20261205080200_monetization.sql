-- migrate:up
-- serve the questions whether a customer has access by a product, with or without its base plan, and whether one has an entitlement
create index entitlement_grants_of_store_product on app.entitlement_grants (split_part(product_id, ':', 1)) where product_id is not null;
create index entitlement_grants_of_entitlement on app.entitlement_grants (entitlement_id);

-- migrate:down
drop index app.entitlement_grants_of_entitlement;
drop index app.entitlement_grants_of_store_product;
