-- What generated display names are made of, Quiet Meadow: an adjective of nature or mood, and a landscape, plant, bird,
-- small animal, weather or stone. Friendly to everybody in every combination, so no word that could be read otherwise.
-- The position is the place in the alphabet, so words move: all go before all come.
delete from app.name_words;

insert into app.name_words (kind, position, word)
select l.kind, w.n - 1, w.word
  from (values
('adjective', $words$
airy alpine amber amiable ample ancient apricot aqua arboreal arctic aromatic artful aspiring astral attentive auburn
autumnal avid awake azure balanced balmy beachy beaming bighearted billowing blithe blooming blossoming blue bonny
boreal botanical boundless bountiful brave breezy bright brightening brilliant brisk bronze bubbling bubbly budding
buoyant burnished calm candid canny carefree caring cedary celadon cerulean charming cheerful cheery chestnut chirping
chirpy cinnamon citrine clear clever cloudless clovered coastal cobalt comfy composed content cool copper coral
cordial cosy courteous crafty creative crimson crisp crystal crystalline curious curly dainty dancing dappled daring
dashing dauntless dawning dazzling deft delicate delightful dewy diligent distant dreamy drifting durable dusky dusty
eager early earnest earthy easygoing ebbing elegant elfin emerald enchanted endless enduring energetic evergreen
everlasting expansive fabled faithful fanciful faraway fearless feathered feathery ferny fertile festive fleecy fleet
floating floral flourishing flowering flowing fluffy fluttering fond forested forthright fragrant free fresh friendly
frosted frosty fuchsia fuzzy gallant generous genial gentle gifted gilded giving glad gladsome glassy gleaming gleeful
glimmering glinting glistening glittering glossy glowing graceful gracious grand grassy grateful green grounded
growing happy hardy harmonious hazel hazy hearty heathery helpful herbal hidden highland hilly honest honeyed hopeful
humble humming idyllic illumined imaginative indigo inland inquisitive inventive inviting iridescent island ivory jade
jaunty jolly jovial joyful joyous jubilant keen kind kindly kindred laughing lavender leafy leaping leisurely lemony
light lilac lilting limpid lively lofty lowland loyal lucent lucid lucky luminous lunar lush lustrous magenta magic
majestic marbled marine maritime marvelous mauve meadowy mellow melodic merry midnight mighty mild mindful mineral
minty mirthful misty modest moonlit mossy mountain musical navy neat neighborly nimble noble nocturnal northern oaken
oceanic ochre opal opaline open optimistic orange outgoing pastel pastoral patient peaceable peaceful pearly pebbled
pebbly peppy perky petaled piney placid playful pleasant plucky plumed plush poetic poised polar polished polite
prismatic pristine proud purple quaint quick quiet quilted quirky radiant rainy ready reedy refreshing relaxed
resilient resolute restful rippling rising roaming robust rocky rolling rosy rounded roving rowan ruby ruddy rugged
russet rustic rustling saffron sage sandy sapphire satin scarlet scenic seafaring seaside seasonal secluded sensible
sepia serene shaded shady shimmering shining shiny silken silky silver silvery sincere singing smiling smooth snowy
snug soaring sociable soft solar sonorous soothing southern sparkling speckled spirited splendid spotted sprightly
springtime sprouting spruce spry stalwart starlit starry steadfast steady stellar still stony striped sturdy sublime
summery sunlit sunny sunset swaying sweet swift swirling sylvan tall tangerine tawny teal temperate thankful
thoughtful thriving tidal tidy timeless topaz trailing tranquil treasured tropical true trusty tufted turquoise
twilight twinkling umber unhurried upbeat upland valiant vast velvet velvety verdant vermilion vernal vibrant vigorous
violet vivacious vivid wandering warm wavy welcoming western whimsical whirling whispering whistling willowy windswept
windy winged winsome wintry wise wondering wondrous wooded woodland woolly zany zealous zesty zippy
$words$),
('noun', $words$
acacia acorn agate albatross alcove alder alfalfa almond aloe alpaca amaryllis amethyst anemone antelope arbor
archipelago aspen aster atoll aurora avocet azalea badger bamboo banksia banyan basalt basil basin bay bayou beach bee
beech begonia bellflower bergamot beryl birch bison blackbird blackcap blossom bluebell bluebird bluff bobolink borage
bough boulder bracken bramble branch breeze briar brook buckwheat bulrush bumblebee bunting burrow buttercup butterfly
buttonwood cactus calendula camellia campion canary canopy canyon cape caribou cascade catkin cedar celandine
chaffinch chamois chamomile chickadee chicory chipmunk cicada clearing clematis cliff cloud cloudberry clover coast
coastline comet condor conifer copse cormorant cornflower cosmos cottontail cottonwood cove cowslip cranberry crane
creek crest cricket crocus curlew current cypress daffodil dahlia daisy dale dandelion daybreak deer dell desert
dewdrop dipper dogwood dolphin dormouse dragonfly driftwood drizzle duckling dune dunlin eagle eddy edelweiss egret
eider elderflower elk elm equinox estuary eucalyptus falcon fauna fawn feather fen fennel fern fescue field fieldfare
fig finch fir firefly firth fjord flamingo flax flint flora flower flycatcher foothill forest forsythia foxglove
freesia frost gale gannet garden gardenia garnet gazelle gecko gentian geode geranium geyser gingko glacier glade
gladiolus glen goldcrest goldenrod goldfinch gorge gorse goshawk gosling granite grasshopper greenfinch grotto grove
guillemot gulf gull hamster harbor hare harebell harvest haven hawk hawthorn hazelnut heath heather hedge hedgehog
hedgerow heron hibiscus hickory hill hillock hillside holly hollyhock honeybee honeysuckle horizon hornbeam
hummingbird hyacinth hydrangea ibex iceberg inlet iris ironwood isle islet ivy jackdaw jasmine jasper jay jonquil
juniper katydid kestrel kingfisher kinglet kittiwake koala lagoon lake lakeside lapwing larch lark larkspur laurel
leaf ledge lichen lily limestone linden linnet llama lupine lynx macaw magnolia magpie mallard mallow mangrove
maplewood marble marigold marjoram marmot marsh marshland marten martin meadow meadowlark mesa meteor midsummer mimosa
mist monsoon moon moonbeam moonstone moose morning moss mountaintop mulberry myrtle narwhal nebula nectar newt
nightfall nightingale nightjar oak oakleaf oasis oat obsidian ocean ocelot oleander onyx orchard oriole osprey otter
outcrop owl owlet oxbow oxeye palm panda parsley partridge pasture peak pearl peat pebble pelican peninsula peony
peregrine periwinkle petal petrel petunia pheasant pigeon pika pine pinecone pinewood pipit plateau plover plumeria
pond poplar porcupine porpoise prairie primrose promontory puddle puffin quail quartz quetzal quince rabbit rain
rainbow raindrop rapids raven ravine redbud redpoll redstart redwing redwood reed reef reindeer ridge rill ripple
river riverbank rivulet robin rose rosebud rosemary rosewood salamander sandbar sandpiper sandstone sapling savanna
saxifrage seabird seagrass seal seashore sedge sequoia shade shale shore shrub siskin skylark slate slope snapdragon
snow snowbell snowdrift snowdrop snowfall snowfield solstice songbird sorrel sparrow speedwell spindrift spinney
spoonbill spring squirrel stag star starfish starflower starling stoat stone stonecrop stork storm strait strand
summit sunbeam sunbird sunflower sunrise sunshine swan sweetpea sycamore tamarack tamarind tanager tarn teak tern
terrace thicket thistle thunder thyme tidepool timber tortoise toucan towhee trail treefrog treetop trillium trout
tulip tundra turaco turnstone turtle turtledove vale valley verbena vine vineyard viola vista vole wagtail walnut
warbler waterfall waterlily wave waxwing wheat wheatear wheatfield whimbrel whirlwind wildflower willow wind wisteria
wolf wombat woodchuck woodlark wren yarrow yew zebra zephyr zinnia
$words$)) as l (kind, words)
 cross join lateral regexp_split_to_table(btrim(l.words, e'\n'), '\s+') with ordinality as w (word, n);
