-- The version of the generator of policies and rules for collections: raised here and in internal.collection_generator,
-- it makes those of every collection in every database anew.
select internal.collections_regenerate(6);
